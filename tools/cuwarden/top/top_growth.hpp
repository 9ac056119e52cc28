// Finds the call stacks of a live process whose memory keeps growing, by the ages of their live
// allocations. A rate over the last seconds cannot tell them from a cache that is being filled.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

class GrowingGroups {
 public:
  // Age in nanoseconds from which a stack's oldest live allocation counts. Before that age, the
  // allocations that a program makes at its start look like growth.
  static constexpr std::uint64_t least_age_ns = 60'000'000'000;

  // Looks at every live allocation. Returns at once if looking would take more than a fiftieth of
  // the time. `now_ns`: the value of monotonic_ns().
  void look(const ledger::Reader&, std::uint64_t now_ns);

  bool empty() const { return rates_.empty(); }
  std::size_t count() const { return rates_.size(); }
  // Returns the growth of all growing stacks together.
  std::uint64_t bytes_per_minute() const;
  // Returns the growth of one stack's group; null if the group does not grow.
  std::optional<std::uint64_t> bytes_per_minute(std::uint32_t group) const;

 private:
  std::uint64_t next_look_ns_ = 0;
  std::unordered_map<std::uint32_t, std::uint64_t> rates_;
};

}  // namespace cuwarden
