// The stacks of a live process that keep growing, by the ages of what they hold. A rate over the
// last seconds cannot tell them from a cache that is being filled.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

class GrowingGroups {
 public:
  // A stack counts once its oldest live allocation is this old. Before that, all that a program
  // sets up at its start looks like growth.
  static constexpr std::uint64_t least_age_ns = 60'000'000'000;

  // Looks at every live allocation, no more often than takes a fiftieth of the time. `now_ns`: of
  // monotonic_ns().
  void look(const ledger::Reader&, std::uint64_t now_ns);

  bool empty() const { return rates_.empty(); }
  std::size_t count() const { return rates_.size(); }
  std::uint64_t bytes_per_minute() const;  // of all
  // Null: does not grow.
  std::optional<std::uint64_t> bytes_per_minute(std::uint32_t group) const;

 private:
  std::uint64_t next_look_ns_ = 0;
  std::unordered_map<std::uint32_t, std::uint64_t> rates_;
};

}  // namespace cuwarden
