#include "reporters/verdicts/account.hpp"

#include <algorithm>
#include <string_view>

#include "reporters/model/values.hpp"

namespace cuwarden {
namespace {

constexpr std::string_view holder_names[] = {
    "slab_waste", "rounding_waste", "mempool_idle", "pool", "other_processes",
    "context",    "modules",        "local_memory", "heap", "streams",
    "graphs",     "libraries",      "page_cache"};
static_assert(std::size(holder_names) == static_cast<std::size_t>(Holder::page_cache) + 1);

}  // namespace

void Account::add(const Entry& entry) {
  if (entry.bytes == 0 || entry.bytes > model::largest_number) return;
  entries_.push_back(entry);
  unexplained_ -= static_cast<std::int64_t>(entry.bytes);
}

void Account::add(Holder holder, std::uint64_t bytes) {
  add(Entry{.holder = holder, .bytes = bytes});
}

void Account::add_live(Kind kind, std::uint64_t bytes, const Spilled& spilled) {
  const std::uint64_t in_order = std::min(spilled.in_stream_order_bytes, spilled.bytes);
  std::uint64_t elsewhere = 0;
  if (kind == Kind::stream_ordered) elsewhere = in_order;
  if (kind == Kind::device) elsewhere = spilled.bytes - in_order;
  add(Entry{.is_live = true, .kind = kind, .bytes = bytes - std::min(bytes, elsewhere)});
}

void Account::add_objects(const Objects& all, const Objects& of_libraries) {
  std::uint64_t libraries = 0;
  const auto add_rest = [&](Holder holder, std::uint64_t bytes, std::uint64_t part) {
    const std::uint64_t of_library = std::min(bytes, part);
    add(holder, bytes - of_library);
    libraries += of_library;
  };
  add_rest(Holder::modules, all.modules, of_libraries.modules);
  add_rest(Holder::streams, all.streams, of_libraries.streams);
  add_rest(Holder::graphs, all.graphs, of_libraries.graphs);
  add(Holder::libraries, libraries);
}

void Account::add_other_processes(std::uint64_t bytes) {
  if (bytes <= model::largest_number)
    add(Holder::other_processes, bytes - std::min(bytes, live(Kind::imported)));
}

std::uint64_t Account::of(Holder holder) const noexcept {
  const auto is_it = [&](const Entry& entry) { return !entry.is_live && entry.holder == holder; };
  const auto found = std::ranges::find_if(entries_, is_it);
  return found == entries_.end() ? 0 : found->bytes;
}

std::uint64_t Account::live(Kind kind) const noexcept {
  const auto is_it = [&](const Entry& entry) { return entry.is_live && entry.kind == kind; };
  const auto found = std::ranges::find_if(entries_, is_it);
  return found == entries_.end() ? 0 : found->bytes;
}

std::uint64_t Account::own() const noexcept {
  std::uint64_t sum = 0;
  for (const Entry& entry : entries_)
    if (entry.is_live && entry.kind != Kind::imported) sum += entry.bytes;
  return sum;
}

std::uint64_t Account::implicit() const noexcept {
  std::uint64_t sum = 0;
  for (const Holder holder : {Holder::context, Holder::modules, Holder::local_memory, Holder::heap,
                              Holder::streams, Holder::graphs, Holder::libraries})
    sum += of(holder);
  return sum;
}

std::vector<Account::Item> Account::items() const {
  std::vector<Item> all;
  for (const Entry& entry : entries_)
    all.emplace_back(entry.is_live
                         ? "live_" + std::string(kind_name(entry.kind))
                         : std::string(holder_names[static_cast<std::size_t>(entry.holder)]),
                     entry.bytes);
  return all;
}

}  // namespace cuwarden
