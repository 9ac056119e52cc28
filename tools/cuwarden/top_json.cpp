#include "tools/cuwarden/top_json.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "reporters/json_stream.hpp"
#include "reporters/process_facts.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

std::int64_t realtime_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

// Null where only one sample was taken, and beyond the numbers that every reader has.
Row per_minute(const Recent& recent, double per_second) {
  const double value = std::round(per_second * 60);
  if (!recent.knows_changes() || std::abs(value) > static_cast<double>(largest_number))
    return nullptr;
  return static_cast<std::int64_t>(value);
}

Row device_number(DeviceOrdinal device) {
  if (device == no_device || device.value < 0) return nullptr;
  return device.value;
}

Row process_row(const WatchedProcess& watched) {
  const ledger::ProcessView process = watched.reader->process();
  const Sample& now = watched.recent->newest();
  const Change change = watched.recent->of_all();
  Row row;
  row["pid"] = watched.pid;
  row["program"] = text_or_null(process.program);
  row["start"] = iso_8601(process.start_realtime_ns);
  row["running_ns"] = number(now.time_ns - std::min(now.time_ns, process.start_monotonic_ns));
  row["ended"] = watched.ended;
  row["device_bytes"] = number(now.device_bytes);
  row["host_bytes"] = number(now.host_bytes);
  row["live_count"] = number(now.live_count);
  row["allocations"] = number(now.allocations);
  row["failures"] = number(now.failures);
  row["growth_bytes_per_minute"] = per_minute(*watched.recent, change.bytes_per_second);
  row["allocations_per_minute"] = per_minute(*watched.recent, change.allocations_per_second);
  return row;
}

Row device_row(const WatchedProcess& watched, const ledger::DeviceView& device) {
  const bool known =
      device.at != ledger::ReadingAt::none && device.total_bytes >= device.free_bytes;
  Row row;
  row["pid"] = watched.pid;
  row["device"] = device_number(device.ordinal);
  row["name"] = text_or_null(device.name);
  row["total_bytes"] = known ? number(device.total_bytes) : nullptr;
  row["used_bytes"] = known ? number(device.total_bytes - device.free_bytes) : nullptr;
  return row;
}

Row total_row(const WatchedProcess& watched, const ledger::SeriesView& series) {
  Row row;
  row["pid"] = watched.pid;
  row["kind"] = kind_name(series.kind);
  row["device"] = device_number(series.device);
  row["live_bytes"] = number(series.live_bytes);
  row["live_count"] = number(series.live_count);
  row["peak_bytes"] = number(series.peak_bytes);
  row["allocations"] = number(series.allocations);
  row["failures"] = number(series.failures);
  return row;
}

Row stack_row(const WatchedProcess& watched, const GroupSample& group, const PlaceName& name) {
  const Change change = watched.recent->of_group(group);
  const auto growing = watched.growing->bytes_per_minute(group.id);
  Row row;
  row["pid"] = watched.pid;
  row["kind"] = kind_name(group.kind);
  row["device"] = device_number(group.device);
  row["api"] = text_or_null(name.api);
  row["where"] = text_or_null(name.where);
  row["live_bytes"] = number(group.live_bytes);
  row["live_count"] = number(group.live_count);
  row["allocations"] = number(group.allocations);
  row["growth_bytes_per_minute"] = per_minute(*watched.recent, change.bytes_per_second);
  row["allocations_per_minute"] = per_minute(*watched.recent, change.allocations_per_second);
  row["keeps_growing"] = growing.has_value();
  row["keeps_growing_bytes_per_minute"] = growing ? number(*growing) : nullptr;
  return row;
}

}  // namespace

void write_top_json(const std::vector<DescribedProcess>& processes, bool with_stacks,
                    Output& output) {
  JsonStream json(output);
  json.value("schema", "cuwarden.top/1");
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
