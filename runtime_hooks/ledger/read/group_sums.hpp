// Sums over the groups of each series, made for all series at once: walking the groups for each
// series would take too long if a damaged or hostile ledger claims many of both. A running process
// changes its groups all the time, so a view that shows groups beside these sums makes the sums
// from the same groups.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden::ledger {

// Sums of the groups by kind and device, for the series of a report.
class GroupSums {
 public:
  GroupSums() = default;
  explicit GroupSums(const Reader&) noexcept;
  // Adds a group's counts to the sums of its series.
  void add(const GroupView&) noexcept;
  // Replaces the series' own numbers by the sums. Does nothing if the series has an impossible
  // device.
  void put_into(SeriesView&) const noexcept;

  // Returns the group's live bytes; 0 if its live count is 0, since a thread changes count and
  // bytes one after the other.
  static std::uint64_t live_bytes(const GroupView& group) noexcept {
    return group.live_count == 0 ? 0 : group.live_bytes;
  }

 private:
  static constexpr std::int32_t most_devices = 256;
  struct Sum {
    std::uint64_t allocations = 0, frees = 0, failures = 0, live_count = 0, live_bytes = 0;
  };
  static std::optional<std::size_t> slot_of(Kind, DeviceOrdinal) noexcept;
  std::array<Sum, kind_count*(most_devices + 1)> sums_{};  // of each kind, index 0 is for no device
};

}  // namespace cuwarden::ledger
