// Sums over the groups of each series. A group has the allocations of one call site of one kind on
// one device; a series has all memory of one kind on one device. The sums of all series are made in
// one walk over the groups: a damaged or hostile ledger may claim so many groups and series that a
// walk for each series would take too long.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden::ledger {

// Sums of the counts of a ledger's groups, by kind and device. A running process changes its groups
// all the time. So a caller that shows groups beside their sums passes to add() the same copies of
// the groups that it shows.
class GroupSums {
 public:
  // Makes sums that are 0. The caller adds groups by add().
  GroupSums() = default;
  // Adds up the counters of each group (allocations with the same call stack, function, kind and
  // device) over all threads, as they are in the reader's ledger now. The reader is not kept.
  explicit GroupSums(const Reader&) noexcept;
  // Adds a group's counts and live bytes to the sums of its kind and device. Does nothing if the
  // kind or the device is out of range, as in a damaged ledger.
  void add(const GroupView&) noexcept;
  // Sets the series' counts and live bytes to the sums for its kind and device. If its peak bytes
  // are below its live bytes, sets its peak bytes and count to the live ones. Does nothing for the
  // series of the process's resident memory, or if the kind or the device is out of range.
  void put_into(SeriesView&) const noexcept;

  // Returns the group's live bytes; 0 if its live count is 0. A thread of a running process changes
  // count and bytes one after the other, so that they may disagree for a moment.
  static std::uint64_t live_bytes(const GroupView& group) noexcept {
    return group.live_count == 0 ? 0 : group.live_bytes;
  }

 private:
  // Number of devices for which sums are kept. Groups of devices with an ordinal of 256 or more are
  // left out of the sums; the series of these devices stay as read.
  static constexpr std::int32_t most_devices = 256;
  // Returns the index in sums_ for this kind and device; null if the kind has no enumerator, or if
  // the ordinal is not in [-1, most_devices).
  static std::optional<std::size_t> slot_of(Kind, DeviceOrdinal) noexcept;
  // Sums of each kind and device, at kind * (most_devices + 1) + ordinal + 1; no_device has the
  // ordinal -1.
  std::array<SeriesTotals, kind_count*(most_devices + 1)> sums_{};
};

}  // namespace cuwarden::ledger
