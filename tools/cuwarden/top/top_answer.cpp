#include "tools/cuwarden/top/top_answer.hpp"

#include <algorithm>
#include <cmath>

#include "reporters/tables/memory_tables.hpp"
#include "reporters/tables/process_facts.hpp"
#include "runtime_hooks/core/clock.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

// Returns a rate per minute; null after only one sample.
model::SignedFigure per_minute(const Recent& recent, double per_second) {
  if (!recent.knows_changes()) return std::nullopt;
  return static_cast<std::int64_t>(std::clamp(std::round(per_second * 60), -0x1p62, 0x1p62));
}

ProcessRow process_row(const WatchedProcess& watched) {
  const ledger::ProcessView process = watched.reader->process();
  const Sample& now = watched.recent->newest();
  const Change change = watched.recent->of_all();
  ProcessRow row;
  row.pid = watched.pid;
  row.program = model::text_or_null(process.program);
  row.user = model::text_or_null(watched.user);
  row.rank = watched.rank;
  row.start = iso_8601(process.start_realtime_ns);
  row.running_ns = now.time_ns - std::min(now.time_ns, process.start_monotonic_ns);
  row.ended = watched.ended;
  row.device_bytes = now.device_bytes;
  row.host_bytes = now.host_bytes;
  row.peak_bytes = now.peak_bytes;
  row.live_count = now.live_count;
  row.allocations = now.allocations;
  row.failures = now.failures;
  row.rescues = now.rescues;
  row.growth_bytes_per_minute = per_minute(*watched.recent, change.bytes_per_second);
  row.allocations_per_minute = per_minute(*watched.recent, change.allocations_per_second);
  if (process.steps != 0 && process.steps <= model::largest_number) row.steps = process.steps;
  return row;
}

DeviceRow device_row(const WatchedProcess& watched, const ledger::DeviceView& device) {
  DeviceRow row;
  row.pid = watched.pid;
  row.device = device_id(device.ordinal);
  row.name = model::text_or_null(device.name);
  if (device.at != ledger::ReadingAt::never && device.total_bytes >= device.free_bytes) {
    row.total_bytes = device.total_bytes;
    row.used_bytes = device.total_bytes - device.free_bytes;
    if (!watched.ended) {
      const Exhaustion left =
          exhaustion_of(device.free_bytes, watched.growing->growth_of(device.ordinal));
      row.steps_left = left.steps;
      row.minutes_left = left.minutes;
    }
  }
  return row;
}

TotalRow total_row(const WatchedProcess& watched, const ledger::SeriesView& series) {
  return {.pid = watched.pid,
          .kind = std::string(kind_name(series.kind)),
          .device = device_id(series.device),
          .live_bytes = series.live_bytes,
          .live_count = series.live_count,
          .peak_bytes = series.peak_bytes,
          .allocations = series.allocations,
          .failures = series.failures};
}

}  // namespace

TopAnswer new_answer() {
  TopAnswer answer;
  answer.tool_version = CUWARDEN_VERSION;
  answer.time = iso_8601(static_cast<std::int64_t>(time_ns_of(CLOCK_REALTIME)));
  return answer;
}

void add_process(const WatchedProcess& watched, TopAnswer& answer) {
  answer.processes.push_back(process_row(watched));
  for (std::uint64_t row = 1; row < watched.reader->rows(RegionId::devices); ++row) {
    if (const auto device = watched.reader->device(row))
      answer.devices.push_back(device_row(watched, *device));
  }
  for (const ledger::SeriesView& series : watched.recent->newest().series)
    answer.totals.push_back(total_row(watched, series));
}

StackRow stack_row(const WatchedProcess& watched, const GroupSample& group) {
  const Change change = watched.recent->of_group(group);
  const auto growing = watched.growing->rate_of(group.id);
  StackRow row;
  row.pid = watched.pid;
  row.kind = kind_name(group.kind);
  row.device = device_id(group.device);
  row.live_bytes = group.live_bytes;
  row.live_count = group.live_count;
  row.allocations = group.allocations;
  row.growth_bytes_per_minute = per_minute(*watched.recent, change.bytes_per_second);
  row.allocations_per_minute = per_minute(*watched.recent, change.allocations_per_second);
  row.keeps_growing = growing.has_value();
  if (growing) {
    row.keeps_growing_bytes_per_minute = growing->bytes_per_minute;
    row.keeps_growing_bytes_per_step = growing->bytes_per_step;
    row.keeps_growing_since_step = growing->first_step;
  }
  return row;
}

}  // namespace cuwarden
