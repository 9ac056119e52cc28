#include "tools/cuwarden/top/top_names.hpp"

#include <thread>
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
                     const CallFrames& frames) {
  const auto hook = reader.hook(group.api.value);
  CallSiteName name;
  const std::vector<NamedFrame> named = frames.named_frames(group.stack.value);
  if (const auto users = users_frame(named)) name.where = function_first(named[*users]);
  name.api = printable(label_group(hook ? hook->name : "", named).api);
  name.where = name.where.empty() ? "no stack was recorded" : printable(name.where);
  return name;
}

std::unordered_map<std::uint32_t, CallSiteName> names_of(const ledger::Reader& reader,
                                                         const std::vector<std::uint32_t>& ids,
                                                         bool with_symbols) {
  CallFrames frames(reader);
  std::vector<ledger::GroupView> groups;
  for (const std::uint32_t id : ids) {
    const auto group = reader.group(id);
    if (!group) continue;
    groups.push_back(*group);
    frames.add_stack(group->stack);
  }
  std::vector<std::string> reasons;
  SymbolBudget unbounded;
  Naming naming(unbounded);
  frames.name_all(with_symbols ? &naming : nullptr, reasons);
  std::unordered_map<std::uint32_t, CallSiteName> names;
  for (const auto& group : groups) names[group.id.value] = name_of(reader, group, frames);
  return names;
}

}  // namespace

struct CallSiteNames::Shared {
  std::shared_ptr<const LedgerFile> file;
  std::mutex lock;
  std::condition_variable changed;
  std::unordered_map<std::uint32_t, CallSiteName> names;
  std::vector<std::uint32_t> wanted;
  bool busy = false, ending = false;
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
    shared->changed.wait(locked, [&] { return shared->ending || !shared->wanted.empty(); });
    if (shared->ending) return;
    const auto wanted = std::exchange(shared->wanted, {});
    shared->busy = true;
    locked.unlock();
    std::unordered_map<std::uint32_t, CallSiteName> found;
    try {
      found = names_of(shared->file->reader(), wanted, true);
    } catch (const std::exception&) {
      // There is not enough memory for the debug information; modules and offsets stay.
    }
    locked.lock();
    for (auto& [id, name] : found) shared->names[id] = std::move(name);
    shared->busy = false;
    shared->changed.notify_all();
  }
}

CallSiteName CallSiteNames::get(std::uint32_t group) const {
  const std::scoped_lock locked(shared_->lock);
  const auto known = shared_->names.find(group);
  return known == shared_->names.end() ? CallSiteName{} : known->second;
}

void CallSiteNames::want(const std::vector<std::uint32_t>& groups) {
  std::vector<std::uint32_t> fresh;
  {
    const std::scoped_lock locked(shared_->lock);
    for (const std::uint32_t id : groups) {
      if (!shared_->names.contains(id)) fresh.push_back(id);
    }
  }
  if (fresh.empty()) return;
  auto quick = names_of(shared_->file->reader(), fresh, false);
  const std::scoped_lock locked(shared_->lock);
  for (auto& [id, name] : quick) shared_->names.try_emplace(id, std::move(name));
  shared_->wanted.insert(shared_->wanted.end(), fresh.begin(), fresh.end());
  shared_->changed.notify_all();
}

bool CallSiteNames::are_known() const {
  const std::scoped_lock locked(shared_->lock);
  return shared_->wanted.empty() && !shared_->busy;
}

void CallSiteNames::wait() const {
  std::unique_lock locked(shared_->lock);
  shared_->changed.wait(locked, [&] { return shared_->wanted.empty() && !shared_->busy; });
}

}  // namespace cuwarden
