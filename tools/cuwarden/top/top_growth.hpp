// Finds call stacks of a running process whose live memory keeps growing, for `cuwarden top`. The
// ages of the live allocations distinguish growth from a cache that is being filled; a rate over
// the last seconds does not.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "reporters/tables/forecasts.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// The groups of one process whose live memory keeps growing. A group is all allocations with one
// call stack, one function, one kind of memory and one device; its id is its row in the ledger.
class GrowingGroups {
 public:
  // Finds the growing groups anew, by a look at each live allocation in the process's ledger.
  // `Reader`: reads that ledger. `now_ns`: present time of CLOCK_MONOTONIC, in nanoseconds. Keeps
  // the earlier result and returns at once if the process is younger than least_growth_ns, or if
  // looks would take more than about a fiftieth of this command's time.
  void look(const ledger::Reader&, std::uint64_t now_ns);

  // True if no growing group is known: the last look() has found none, or no look() was made yet.
  bool empty() const { return rates_.empty(); }
  // The growth of a group's live bytes.
  struct Rate {
    std::uint64_t bytes_per_minute = 0;
    // bytes_per_step: growth per step of the program. first_step: number of the step in which the
    // oldest live allocation was made. Null: the growth is not judged by steps, as in a program
    // that does not mark its steps (LeakGroup::is_judged_by_steps()).
    std::optional<std::uint64_t> bytes_per_step{}, first_step{};
  };
  // Returns the growth of a group as the last look() has found it; null if the group does not grow.
  // `group`: the group's row in the ledger.
  std::optional<Rate> rate_of(std::uint32_t group) const;
  // Returns the growth of a device's live memory as the last look() has found it, of groups that
  // have grown for at least a minute. The rates are 0 for a device that does not grow or is
  // unknown, and before the first look(). DeviceGrowth::fastest is null.
  DeviceGrowth growth_of(DeviceOrdinal device) const;

 private:
  // Time of CLOCK_MONOTONIC, in nanoseconds, before which look() does nothing.
  std::uint64_t next_look_ns_ = 0;
  std::unordered_map<std::uint32_t, Rate> rates_;  // growing groups, by their row in the ledger
  std::vector<DeviceGrowth> devices_;              // growing devices; DeviceGrowth::fastest is null
};

}  // namespace cuwarden
