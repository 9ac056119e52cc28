// Which stacks of a live process grow without bound, by the ages of what they hold: what a rate
// over the last seconds cannot tell from a cache that is being filled.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "runtime_hooks/ledger/reader.hpp"

namespace cuwarden {

class GrowingGroups {
 public:
  // Looks at every live allocation, no more often than takes a fiftieth of the time.
  void look(const ledger::Reader&);

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
