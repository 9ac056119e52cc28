// What of a device's memory this process has, by its own counters.
#include <algorithm>

#include "runtime_hooks/ledger/writer_state.hpp"

namespace cuwarden::ledger {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

bool is_on(const Series& series, DeviceOrdinal device) noexcept {
  return series.state.load(std::memory_order_acquire) == 1 && series.device == device.value &&
         series.kind != series_host_rss && is_in_device_account(Kind{series.kind});
}

}  // namespace

std::uint64_t Writer::live_bytes_on(DeviceOrdinal device) noexcept {
  const Series* const rows = state_.storage.rows<Series>(RegionId::series);
  const std::uint64_t used = state_.storage.used(RegionId::series);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 1; i < used; ++i)
    if (is_on(rows[i], device)) sum += rows[i].live_bytes.load(relaxed);
  return sum;
}

// By the same thread, or both in the lane that threads share.
void Writer::State::count_being_freed(const TakenRecord& taken, bool begins) noexcept {
  const std::uint32_t series =
      storage.rows<Group>(RegionId::groups)[taken.fields.group.value].series;
  if ((taken.fields.flags & record_counts_no_bytes) != 0 || series == 0 ||
      series >= Lane::series_limit)
    return;
  Lane& lane = lanes.mine();
  const std::uint64_t bytes = taken.fields.bytes.value;
  lane.add(lane.being_freed(series), begins ? bytes : 0 - bytes);
}

void Writer::free_begins(const TakenRecord& taken) noexcept {
  state_.count_being_freed(taken, true);
}
void Writer::free_came_back(const TakenRecord& taken) noexcept {
  state_.count_being_freed(taken, false);
}

std::uint64_t Writer::being_freed_on(DeviceOrdinal device) noexcept {
  const Series* const rows = state_.storage.rows<Series>(RegionId::series);
  const std::uint64_t used =
      std::min<std::uint64_t>(state_.storage.used(RegionId::series), Lane::series_limit);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 1; i < used; ++i) {
    if (!is_on(rows[i], device)) continue;
    state_.lanes.for_each_and_shared([&](Lane& lane) { sum += lane.being_freed(i).load(relaxed); });
  }
  return sum;
}

}  // namespace cuwarden::ledger
