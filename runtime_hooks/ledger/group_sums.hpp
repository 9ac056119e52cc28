// What the groups of a series add up to, for all series at once: walking the groups for each series
// would take for ever where a damaged or hostile ledger claims many of both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime_hooks/ledger/reader.hpp"

namespace cuwarden::ledger {

class GroupSums {
 public:
  explicit GroupSums(const Reader&) noexcept;
  // Nothing where the series has a device that no machine has.
  void add_to(SeriesView&) const noexcept;

 private:
  static constexpr std::int32_t most_devices = 256;
  struct Sum {
    std::uint64_t allocations = 0, frees = 0, failures = 0, live_count = 0, live_bytes = 0;
  };
  static std::optional<std::size_t> place_of(Kind, DeviceOrdinal) noexcept;
  std::array<Sum, kind_count*(most_devices + 1)> sums_{};  // the first of each kind: no device
};

}  // namespace cuwarden::ledger
