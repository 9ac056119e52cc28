#include "tools/cuwarden/top/top_json.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "reporters/json/json_stream.hpp"
#include "reporters/tables/memory_tables.hpp"
#include "reporters/tables/process_facts.hpp"
#include "tools/cuwarden/top/top_rows.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

std::int64_t realtime_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

// Returns a rate per minute. It is null after only one sample, and if the number is larger than
// every JSON reader can hold.
model::SignedFigure per_minute(const Recent& recent, double per_second) {
  const double value = std::round(per_second * 60);
  if (!recent.knows_changes() || std::abs(value) > static_cast<double>(model::largest_number))
    return std::nullopt;
  return static_cast<std::int64_t>(value);
}

ProcessRow process_row(const WatchedProcess& watched) {
  const ledger::ProcessView process = watched.reader->process();
  const Sample& now = watched.recent->newest();
  const Change change = watched.recent->of_all();
  ProcessRow row;
  row.pid = watched.pid;
  row.program = model::text_or_null(process.program);
  row.start = iso_8601(process.start_realtime_ns);
  row.running_ns = now.time_ns - std::min(now.time_ns, process.start_monotonic_ns);
  row.ended = watched.ended;
  row.device_bytes = now.device_bytes;
  row.host_bytes = now.host_bytes;
  row.live_count = now.live_count;
  row.allocations = now.allocations;
  row.failures = now.failures;
  row.growth_bytes_per_minute = per_minute(*watched.recent, change.bytes_per_second);
  row.allocations_per_minute = per_minute(*watched.recent, change.allocations_per_second);
  return row;
}

DeviceRow device_row(const WatchedProcess& watched, const ledger::DeviceView& device) {
  DeviceRow row;
  row.pid = watched.pid;
  row.device = device_id(device.ordinal);
  row.name = model::text_or_null(device.name);
  if (device.at != ledger::ReadingAt::none && device.total_bytes >= device.free_bytes) {
    row.total_bytes = device.total_bytes;
    row.used_bytes = device.total_bytes - device.free_bytes;
  }
  return row;
}

TotalRow total_row(const WatchedProcess& watched, const ledger::SeriesView& series) {
  return {watched.pid,
          std::string(kind_name(series.kind)),
          device_id(series.device),
          series.live_bytes,
          series.live_count,
          series.peak_bytes,
          series.allocations,
          series.failures};
}

StackRow stack_row(const WatchedProcess& watched, const GroupSample& group,
                   const CallSiteName& name) {
  const Change change = watched.recent->of_group(group);
  const auto growing = watched.growing->bytes_per_minute(group.id);
  StackRow row;
  row.pid = watched.pid;
  row.kind = kind_name(group.kind);
  row.device = device_id(group.device);
  row.api = model::text_or_null(name.api);
  row.where = model::text_or_null(name.where);
  row.live_bytes = group.live_bytes;
  row.live_count = group.live_count;
  row.allocations = group.allocations;
  row.growth_bytes_per_minute = per_minute(*watched.recent, change.bytes_per_second);
  row.allocations_per_minute = per_minute(*watched.recent, change.allocations_per_second);
  row.keeps_growing = growing.has_value();
  row.keeps_growing_bytes_per_minute = growing;
  return row;
}

}  // namespace

void write_top_json(const std::vector<DescribedProcess>& processes, bool with_stacks,
                    Output& output) {
  JsonStream json(output);
  json.value("schema", top_schema);
  json.value("tool_version", CUWARDEN_VERSION);
  json.value("time", iso_8601(realtime_now_ns()));
  json.begin_table("processes");
  for (const auto& each : processes) json.row(process_row(each.process));
  json.end_table();
  json.begin_table("devices");
  for (const auto& each : processes) {
    const ledger::Reader& reader = *each.process.reader;
    for (std::uint64_t row = 1; row < reader.rows(RegionId::devices); ++row) {
      if (const auto device = reader.device(row)) json.row(device_row(each.process, *device));
    }
  }
  json.end_table();
  json.begin_table("totals");
  for (const auto& each : processes) {
    for (const ledger::SeriesView& series : each.process.recent->newest().series)
      json.row(total_row(each.process, series));
  }
  json.end_table();
  if (with_stacks) {
    json.begin_table("stacks");
    for (const auto& each : processes) {
      for (const GroupSample& group : each.groups)
        json.row(stack_row(each.process, group, each.name_of(group.id)));
    }
    json.end_table();
  }
  json.finish();
}

}  // namespace cuwarden
