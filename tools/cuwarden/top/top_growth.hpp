// Finds call stacks of a running process whose allocations keep growing, for `cuwarden top`. The
// ages of their live allocations tell growth from a cache that is being filled; a rate over the
// last seconds cannot.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// The growing groups of one process. A group is all allocations with one call stack, one kind of
// memory and one device; its id is its row in the ledger.
class GrowingGroups {
 public:
  // Shortest time in nanoseconds for which a group must have been growing to count, and least age
  // of the process. Over a shorter time, the allocations of a program's start look like growth.
  static constexpr std::uint64_t least_age_ns = 60'000'000'000;

  // Finds the growing groups anew, by a look at every live allocation in the process's ledger.
  // `now_ns`: the value of monotonic_ns(). Returns at once, with the earlier result, if looks would
  // otherwise take more than about a fiftieth of this command's time, or if the process is younger
  // than least_age_ns.
  void look(const ledger::Reader&, std::uint64_t now_ns);

  // True if no group grows.
  bool empty() const { return rates_.empty(); }
  // Returns the growth of the group with this id, in bytes per minute; null if it does not grow.
  std::optional<std::uint64_t> bytes_per_minute(std::uint32_t group) const;

 private:
  std::uint64_t next_look_ns_ = 0;  // monotonic_ns() before which look() does nothing
  std::unordered_map<std::uint32_t, std::uint64_t> rates_;  // group id → bytes per minute
};

}  // namespace cuwarden
