// What the groups of a series add up to, for all series at once: walking the groups for each series
// would take for ever where a damaged or hostile ledger claims many of both. A process that goes on
// changes its groups all the time: whoever shows them beside these sums adds up what is shown.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden::ledger {

class GroupSums {
 public:
  GroupSums() = default;
  explicit GroupSums(const Reader&) noexcept;
  void add(const GroupView&) noexcept;
  // Takes the place of what the series states. Nothing where it has a device that no machine has.
  void put_into(SeriesView&) const noexcept;

  // Nothing between an allocation's bytes and its count, or its count and its bytes when it goes.
  static std::uint64_t live_bytes(const GroupView& group) noexcept {
    return group.live_count == 0 ? 0 : group.live_bytes;
  }

 private:
  static constexpr std::int32_t most_devices = 256;
  struct Sum {
    std::uint64_t allocations = 0, frees = 0, failures = 0, live_count = 0, live_bytes = 0;
  };
  static std::optional<std::size_t> place_of(Kind, DeviceOrdinal) noexcept;
  std::array<Sum, kind_count*(most_devices + 1)> sums_{};  // the first of each kind: no device
};

}  // namespace cuwarden::ledger
