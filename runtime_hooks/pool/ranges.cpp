#include "runtime_hooks/pool/ranges.hpp"

#include <algorithm>
#include <iterator>

namespace cuwarden::pool {

bool Ranges::insert(const Range& range) {
  const Locked locked(lock_);
  if (!locked) return false;
  ranges_.emplace(range.start, range);
  count_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

std::optional<Range> Ranges::take_at(Map::iterator found) noexcept {
  if (found == ranges_.end()) return std::nullopt;
  const Range range = found->second;
  ranges_.erase(found);
  count_.fetch_sub(1, std::memory_order_relaxed);
  return range;
}

std::optional<Range> Ranges::take(std::uint64_t start) noexcept {
  if (!any()) return std::nullopt;
  const Locked locked(lock_);
  if (!locked) return std::nullopt;
  return take_at(ranges_.find(start));
}

template <class Is>
std::optional<Range> Ranges::take_one(const Is& is) noexcept {
  if (!any()) return std::nullopt;
  const Locked locked(lock_);
  if (!locked) return std::nullopt;
  return take_at(
      std::ranges::find_if(ranges_, [&is](const auto& entry) { return is(entry.second); }));
}

std::optional<Range> Ranges::take_of(ContextId context) noexcept {
  return take_one([context](const Range& range) { return range.context == context; });
}

std::optional<Range> Ranges::take_used_in(ContextId context) noexcept {
  return take_one([context](const Range& range) {
    return (range.used_in.value != 0 ? range.used_in : range.context) == context;
  });
}

std::optional<Range> Ranges::around(std::uint64_t address) noexcept {
  if (!any()) return std::nullopt;
  const Locked locked(lock_);
  if (!locked) return std::nullopt;
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return std::nullopt;
  const Range& range = std::prev(after)->second;
  return address - range.start < range.bytes ? std::optional(range) : std::nullopt;
}

bool Ranges::starts_at(std::uint64_t address) noexcept {
  if (!any()) return false;
  const Locked locked(lock_);
  return locked && ranges_.contains(address);
}

void Ranges::set_sync_memops(std::uint64_t start, bool on) noexcept {
  const Locked locked(lock_);
  if (!locked) return;
  if (const auto found = ranges_.find(start); found != ranges_.end())
    found->second.sync_memops = on;
}

}  // namespace cuwarden::pool
