#include "runtime_hooks/ledger/read/group_sums.hpp"

namespace cuwarden::ledger {

std::optional<std::size_t> GroupSums::slot_of(Kind kind, DeviceOrdinal device) noexcept {
  const auto row = static_cast<std::size_t>(kind);
  if (row >= kind_count || device.value < -1 || device.value >= most_devices) return std::nullopt;
  return row * (most_devices + 1) + static_cast<std::size_t>(device.value + 1);
}

GroupSums::GroupSums(const Reader& reader) noexcept {
  const std::uint64_t rows = reader.rows(RegionId::groups);
  for (std::uint64_t row = 1; row < rows; ++row) {
    if (const std::optional<GroupView> group = reader.group(row)) add(*group);
  }
}

void GroupSums::add(const GroupView& group) noexcept {
  const auto slot = slot_of(group.kind, group.device);
  if (!slot) return;
  SeriesTotals& sum = sums_[*slot];
  sum.allocations += group.allocations;
  sum.allocated_bytes += group.allocated_bytes;
  sum.frees += group.frees;
  sum.failures += group.failures;
  sum.live_count += group.live_count;
  sum.live_bytes += live_bytes(group);
}

void GroupSums::put_into(SeriesView& series) const noexcept {
  if (series.host_rss) return;
  const auto slot = slot_of(series.kind, series.device);
  if (!slot) return;
  static_cast<SeriesTotals&>(series) = sums_[*slot];
  // The peak is at least the live bytes. It may be below them if the peak was reached just now.
  // It may also be below them if the process was killed between the changes of a group's counters
  // and of the series'.
  if (series.peak_bytes < series.live_bytes) {
    series.peak_bytes = series.live_bytes;
    series.peak_count = series.live_count;
  }
}

}  // namespace cuwarden::ledger
