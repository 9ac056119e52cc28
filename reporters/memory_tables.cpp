#include "reporters/memory_tables.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include "reporters/each_row.hpp"
#include "reporters/symbolizer.hpp"
#include "runtime_hooks/ledger/read/group_sums.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

Row device_or_null(DeviceOrdinal device) {
  return device == no_device ? Row(nullptr) : Row(device.value);
}

Row uuid_text(const std::uint8_t (&uuid)[16]) {
  std::string text = "GPU-";
  bool known = false;
  for (std::size_t i = 0; i < 16; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x", uuid[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
    known = known || uuid[i] != 0;
  }
  return known ? Row(text) : Row(nullptr);
}

// References to earlier parts of a name make what it stands for grow without a bound; this name may
// come from somebody else's file.
std::string kernel_name(const std::string& mangled) {
  constexpr std::size_t longest = 512;
  constexpr std::ptrdiff_t most_references = 12;
  return mangled.size() > longest || std::ranges::count(mangled, '_') > most_references
             ? mangled
             : demangled(mangled.c_str());
}

}  // namespace

void write_devices(const ledger::Reader& reader, JsonStream& json) {
  json.begin_table("devices");
  each_row(reader, RegionId::devices, &ledger::Reader::device, [&](const auto& device) {
    if (device.ordinal.value < 0) return;  // a damaged ledger's, as is a bucket without width
    const bool read = device.at != ledger::ReadingAt::none;
    const auto reading = [&](std::uint64_t value) { return read ? number(value) : Row(nullptr); };
    Row row;
    row["device"] = device.ordinal.value;
    row["uuid"] = uuid_text(device.uuid);
    row["name"] = text_or_null(device.name);
    row["at"] = !read                                       ? Row(nullptr)
                : device.at == ledger::ReadingAt::last_call ? Row("last_call")
                                                            : Row("exit");
    row["time_ns"] = reading(device.time_ns);
    row["total_bytes"] = reading(device.total_bytes);
    row["used_bytes"] = reading(device.total_bytes - device.free_bytes);
    row["free_bytes"] = reading(device.free_bytes);
    const std::uint64_t local = device.implicit.largest_local;
    row["local_memory_kernel"] =
        local == 0 ? Row(nullptr)
                   : text_or_null(kernel_name(std::string(device.largest_local_kernel)));
    row["local_memory_kernel_thread_bytes"] = local == 0 ? Row(nullptr) : number(local);
    json.row(row);
  });
  json.end_table();
}

std::vector<ledger::SeriesView> all_series(const ledger::Reader& reader,
                                           const ledger::GroupSums& sums) {
  std::vector<ledger::SeriesView> result;
  each_row(reader, RegionId::series, &ledger::Reader::series, [&](ledger::SeriesView series) {
    if (series.host_rss) return;
    sums.put_into(series);
    result.push_back(series);
  });
  return result;
}

void write_totals(const std::vector<ledger::SeriesView>& all, JsonStream& json) {
  json.begin_table("totals");
  for (const ledger::SeriesView& series : all) {
    Row row;
    row["kind"] = kind_name(series.kind);
    row["device"] = device_or_null(series.device);
    row["allocations"] = number(series.allocations);
    row["frees"] = number(series.frees);
    row["failures"] = number(series.failures);
    row["live_count"] = number(series.live_count);
    row["live_bytes"] = number(series.live_bytes);
    row["peak_count"] = number(series.peak_count);
    row["peak_bytes"] = number(series.peak_bytes);
    row["peak_time_ns"] = series.peak_bytes == 0 ? Row(nullptr) : number(series.peak_ns);
    json.row(row);
  }
  json.end_table();
}

void write_timeline(const ledger::Reader& reader, JsonStream& json) {
  json.begin_table("timeline");
  each_row(reader, RegionId::series, &ledger::Reader::series, [&](const auto& series) {
    for (std::size_t i = 0; i < series.buckets_used && i < ledger::bucket_count; ++i) {
      const ledger::BucketView& bucket = series.buckets[i];
      if (bucket.width_ns == 0) continue;
      Row row;
      row["time_ns"] = number(bucket.time_ns);
      row["width_ns"] = number(bucket.width_ns);
      row["device"] = series.host_rss ? Row(nullptr) : device_or_null(series.device);
      row["kind"] = series.host_rss ? "host_rss" : kind_name(series.kind);
      row["max_bytes"] = number(bucket.max_bytes);
      row["last_bytes"] = number(bucket.last_bytes);
      json.row(row);
    }
  });
  json.end_table();
}

}  // namespace cuwarden
