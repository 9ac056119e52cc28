#include "tools/cuwarden/top/top_names.hpp"

#include <new>
#include <thread>
#include <unordered_set>
#include <utility>

#include "reporters/labels/group_label.hpp"
#include "reporters/labels/users_frame.hpp"
#include "reporters/owners/short_names.hpp"
#include "reporters/symbols/naming.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {

// Names and call stacks that were found, by their groups' rows in the ledger.
struct FoundNames {
  std::unordered_map<std::uint32_t, CallSiteName> names;
  std::unordered_map<std::uint32_t, StackLines> stacks;
};

namespace {

// Returns the frame with its function first, which a narrow terminal shows: "step  train.py:41".
std::string function_first(const NamedFrame& frame) {
  std::string location(file_name(frame.file));
  if (!location.empty() && frame.line != 0) location += ":" + std::to_string(frame.line);
  if (location.empty())
    location = (frame.module == 0 ? "" : std::string(file_name(frame.path)) + "+") +
               address_text(frame.offset);
  const std::string function = short_name(frame.function);
  return function.empty() ? location : function + "  " + location;
}

CallSiteName name_of(const ledger::Reader& reader, const ledger::GroupView& group,
                     const std::vector<NamedFrame>& named) {
  const auto hook = reader.hook(group.api.value);
  CallSiteName name;
  if (const auto users = users_frame(named)) {
    const NamedFrame& frame = named[*users];
    name.where = printable(function_first(frame));
    name.location = printable(short_location_text(frame));
    const std::string_view module = frame.is_python ? frame.file : frame.path;
    name.module = printable(std::string(file_name(module)));
  }
  name.api = printable(label_group(hook ? hook->name : "", named).api);
  if (name.where.empty()) name.where = name.location = "no stack was recorded";
  return name;
}

StackLines lines_of(const std::vector<NamedFrame>& named) {
  const auto users = users_frame(named);
  StackLines lines;
  for (const NamedFrame& frame : named)
    lines.push_back({printable(location_text(frame)), printable(short_location_text(frame)),
                     printable(std::string(frame.library)), users == lines.size()});
  return lines;
}

// Looks up the names of call sites (`ids`), and whole call stacks (`whole`).
FoundNames look_up_names(const ledger::Reader& reader, const std::vector<std::uint32_t>& ids,
                         const std::vector<std::uint32_t>& whole, bool with_symbols) {
  CallFrames frames(reader);
  std::vector<ledger::GroupView> groups, whole_groups;
  const auto add = [&](const std::vector<std::uint32_t>& rows,
                       std::vector<ledger::GroupView>& added) {
    for (const std::uint32_t id : rows) {
      const auto group = reader.group(id);
      if (!group) continue;
      added.push_back(*group);
      frames.add_stack(group->stack);
    }
  };
  add(ids, groups);
  add(whole, whole_groups);
  std::vector<std::string> reasons;
  SymbolBudget unbounded;
  Naming naming(unbounded);
  frames.name_all(with_symbols ? &naming : nullptr, reasons);
  FoundNames found;
  for (const auto& group : groups)
    found.names[group.id.value] = name_of(reader, group, frames.named_frames(group.stack.value));
  for (const auto& group : whole_groups)
    found.stacks[group.id.value] = lines_of(frames.named_frames(group.stack.value));
  return found;
}

}  // namespace

struct CallSiteNames::Shared {
  std::shared_ptr<const LedgerFile> file;
  std::mutex lock;
  std::condition_variable changed;
  FoundNames known;
  std::vector<std::uint32_t> wanted, wanted_whole;
  std::unordered_set<std::uint32_t> asked, asked_whole;  // all for which names were ever asked
  bool busy = false, ending = false;
  std::uint64_t revision = 0;  // rises with each change of `known`

  bool is_idle() const { return wanted.empty() && wanted_whole.empty() && !busy; }
};

CallSiteNames::CallSiteNames(std::shared_ptr<const LedgerFile> file)
    : shared_(std::make_shared<Shared>()) {
  shared_->file = std::move(file);
  std::thread(look_up, shared_).detach();
}

CallSiteNames::~CallSiteNames() {
  const std::scoped_lock locked(shared_->lock);
  shared_->ending = true;
  shared_->changed.notify_all();
}

void CallSiteNames::look_up(std::shared_ptr<Shared> shared) {
  std::unique_lock locked(shared->lock);
  for (;;) {
    shared->changed.wait(locked, [&] { return shared->ending || !shared->is_idle(); });
    if (shared->ending) return;
    const auto wanted = std::exchange(shared->wanted, {});
    const auto whole = std::exchange(shared->wanted_whole, {});
    shared->busy = true;
    locked.unlock();
    FoundNames found;
    try {
      found = look_up_names(shared->file->reader(), wanted, whole, true);
    } catch (const std::bad_alloc&) {
      // There is not enough memory for the debug information; modules and offsets stay.
    }
    for (const std::uint32_t id : whole) found.stacks.try_emplace(id);
    locked.lock();
    for (auto& [id, name] : found.names) shared->known.names[id] = std::move(name);
    for (auto& [id, stack] : found.stacks) shared->known.stacks[id] = std::move(stack);
    ++shared->revision;
    shared->busy = false;
    shared->changed.notify_all();
  }
}

CallSiteName CallSiteNames::get(std::uint32_t group) const {
  const std::scoped_lock locked(shared_->lock);
  const auto known = shared_->known.names.find(group);
  return known == shared_->known.names.end() ? CallSiteName{} : known->second;
}

void CallSiteNames::want(const std::vector<std::uint32_t>& groups) {
  std::vector<std::uint32_t> fresh;
  {
    const std::scoped_lock locked(shared_->lock);
    for (const std::uint32_t id : groups) {
      if (!shared_->known.names.contains(id)) fresh.push_back(id);
    }
  }
  if (fresh.empty()) return;
  auto quick = look_up_names(shared_->file->reader(), fresh, {}, false);
  {
    const std::scoped_lock locked(shared_->lock);
    for (auto& [id, name] : quick.names) shared_->known.names.try_emplace(id, std::move(name));
    ++shared_->revision;
  }
  want_later(fresh);
}

void CallSiteNames::want_later(const std::vector<std::uint32_t>& groups) {
  const std::scoped_lock locked(shared_->lock);
  for (const std::uint32_t id : groups) {
    if (shared_->asked.insert(id).second) shared_->wanted.push_back(id);
  }
  shared_->changed.notify_all();
}

std::optional<StackLines> CallSiteNames::whole_stack(std::uint32_t group) {
  const std::scoped_lock locked(shared_->lock);
  const auto known = shared_->known.stacks.find(group);
  if (known != shared_->known.stacks.end()) return known->second;
  if (shared_->asked_whole.insert(group).second) shared_->wanted_whole.push_back(group);
  shared_->changed.notify_all();
  return std::nullopt;
}

std::uint64_t CallSiteNames::revision() const {
  const std::scoped_lock locked(shared_->lock);
  return shared_->revision;
}

bool CallSiteNames::are_known() const {
  const std::scoped_lock locked(shared_->lock);
  return shared_->is_idle();
}

void CallSiteNames::wait() const {
  std::unique_lock locked(shared_->lock);
  shared_->changed.wait(locked, [&] { return shared_->is_idle(); });
}

}  // namespace cuwarden
