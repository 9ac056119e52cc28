#include "reporters/tables/memory_tables.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include "reporters/model/each_row.hpp"
#include "reporters/symbols/symbolizer.hpp"
#include "reporters/verdicts/incident_case.hpp"
#include "runtime_hooks/ledger/read/free_bytes.hpp"
#include "runtime_hooks/ledger/read/group_sums.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

model::Text uuid_text(const std::uint8_t (&uuid)[16]) {
  std::string text = "GPU-";
  bool known = false;
  for (std::size_t i = 0; i < 16; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x", uuid[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
    known = known || uuid[i] != 0;
  }
  return known ? model::Text(text) : std::nullopt;
}

// Returns the kernel's name. A name with many references to its earlier parts is not expanded,
// since its length would have no bound. The name may come from another user's file.
std::string kernel_name(const std::string& mangled) {
  constexpr std::size_t longest = 512;
  constexpr std::ptrdiff_t most_references = 12;
  return mangled.size() > longest || std::ranges::count(mangled, '_') > most_references
             ? mangled
             : demangled(mangled.c_str());
}

}  // namespace

void put_devices(const ledger::Reader& reader, const std::vector<ledger::SeriesView>& all,
                 Put<model::Device> put) {
  each_row(reader, RegionId::devices, &ledger::Reader::device, [&](const auto& device) {
    if (device.ordinal.value < 0) return;  // a damaged ledger's row
    model::Device row;
    row.device = static_cast<model::Id>(device.ordinal.value);
    row.uuid = uuid_text(device.uuid);
    row.name = model::text_or_null(device.name);
    if (device.at != ledger::ReadingAt::never) {
      row.at = device.at == ledger::ReadingAt::last_call ? "last_call" : "exit";
      row.time_ns = device.time_ns;
      row.total_bytes = device.total_bytes;
      row.free_bytes = ledger::free_bytes_now(device, all);
      row.used_bytes = device.total_bytes - *row.free_bytes;
    }
    if (const std::uint64_t local = device.implicit.largest_local; local != 0) {
      row.local_memory_kernel =
          model::text_or_null(kernel_name(std::string(device.largest_local_kernel)));
      row.local_memory_kernel_thread_bytes = local;
    }
    put(row);
  });
}

std::vector<ledger::SeriesView> all_series(const ledger::Reader& reader,
                                           const ledger::GroupSums& sums) {
  std::vector<ledger::SeriesView> result;
  each_row(reader, RegionId::series, &ledger::Reader::series, [&](ledger::SeriesView series) {
    // Implicit memory is no allocation: `accounts` and `implicit_groups` have it.
    if (series.host_rss || !is_asked_for(series.kind)) return;
    sums.put_into(series);
    result.push_back(series);
  });
  return result;
}

void put_totals(const std::vector<ledger::SeriesView>& all, Put<model::Total> put) {
  for (const ledger::SeriesView& series : all) {
    model::Total row;
    row.kind = kind_name(series.kind);
    row.device = device_id(series.device);
    row.allocations = series.allocations;
    row.allocated_bytes = series.allocated_bytes;
    row.frees = series.frees;
    row.failures = series.failures;
    row.live_count = series.live_count;
    row.live_bytes = series.live_bytes;
    row.peak_count = series.peak_count;
    row.peak_bytes = series.peak_bytes;
    if (series.peak_bytes != 0) row.peak_time_ns = series.peak_ns;
    put(row);
  }
}

void put_timeline(const ledger::Reader& reader, Put<model::Bucket> put) {
  each_row(reader, RegionId::series, &ledger::Reader::series, [&](const auto& series) {
    if (!series.host_rss && is_implicit(series.kind)) return;
    for (std::size_t i = 0; i < series.buckets_used && i < ledger::bucket_count; ++i) {
      const ledger::BucketView& bucket = series.buckets[i];
      if (bucket.width_ns == 0) continue;
      model::Bucket row;
      row.time_ns = bucket.time_ns;
      row.width_ns = bucket.width_ns;
      if (!series.host_rss) row.device = device_id(series.device);
      row.kind = series.host_rss ? "host_rss" : kind_name(series.kind);
      row.max_bytes = bucket.max_bytes;
      row.last_bytes = bucket.last_bytes;
      put(row);
    }
  });
}

void put_peak_holders(const ledger::Reader& reader, const CallFrames& frames,
                      Put<model::PeakHolder> put) {
  each_row(reader, RegionId::groups, &ledger::Reader::group, [&](const auto& group) {
    if (group.at_peak_count == 0 || !is_asked_for(group.kind)) return;
    model::PeakHolder row;
    row.device = device_id(group.device);
    row.kind = kind_name(group.kind);
    row.stack = frames.known_stack(group.stack);
    row.count = group.at_peak_count;
    row.bytes = group.at_peak_bytes;
    row.allocations = group.allocations;
    row.first_ns = group.first_ns;
    row.last_ns = group.last_ns;
    put(row);
  });
}

model::Pool pool_of(const ledger::Reader& reader) {
  model::Pool pool;
  pool.mode = "off";
  each_row(reader, RegionId::settings, &ledger::Reader::setting, [&](const auto& setting) {
    for (const char* mode : {"rescue", "on", "auto"})
      if (setting.name == "CUWARDEN_POOL" && setting.value == mode) pool.mode = mode;
  });
  std::uint64_t rescued_count = 0, rescued_bytes = 0;
  each_row(reader, RegionId::incidents, &ledger::Reader::incident, [&](const auto& incident) {
    rescued_count += rescues_of(incident);
    rescued_bytes += incident.rescued_bytes;
  });
  std::uint64_t spilled = 0, spilled_at_most = 0, spilled_count = 0;
  const ledger::ProcessView& process = reader.process();
  ledger::ArenaUse arenas{.held_bytes = process.pinned_held_bytes,
                          .served_count = process.pinned_served_count,
                          .served_bytes = process.pinned_served_bytes};
  each_row(reader, RegionId::devices, &ledger::Reader::device, [&](const auto& device) {
    spilled += device.spilled_bytes;
    // Sum of each device's peak, which they reach at different moments.
    spilled_at_most += device.spilled_peak_bytes;
    spilled_count += device.spilled_count;
    arenas.held_bytes += device.arena.held_bytes;
    arenas.served_count += device.arena.served_count;
    arenas.served_bytes += device.arena.served_bytes;
    arenas.returned_bytes += device.arena.returned_bytes;
    arenas.meshed_pages += device.arena.meshed_pages;
    arenas.meshed_bytes += device.arena.meshed_bytes;
    arenas.pause_ns += device.arena.pause_ns;
    arenas.pauses += device.arena.pauses;
    arenas.plan_ns += device.arena.plan_ns;
    arenas.prepare_ns += device.arena.prepare_ns;
    arenas.release_ns += device.arena.release_ns;
  });
  pool.rescued_count = rescued_count;
  pool.rescued_bytes = rescued_bytes;
  pool.served_count = arenas.served_count;
  pool.served_bytes = arenas.served_bytes;
  pool.held_bytes = arenas.held_bytes;
  pool.returned_bytes = arenas.returned_bytes;
  pool.meshed_pages = arenas.meshed_pages;
  pool.mesh_recovered_bytes = arenas.meshed_bytes;
  pool.mesh_pause_ns = arenas.pause_ns;
  pool.mesh_pauses = arenas.pauses;
  pool.mesh_plan_ns = arenas.plan_ns;
  pool.mesh_prepare_ns = arenas.prepare_ns;
  pool.mesh_release_ns = arenas.release_ns;
  pool.spilled_bytes = spilled;
  pool.spilled_peak_bytes = spilled_at_most;
  pool.spilled_count = spilled_count;
  pool.ipc_refused = (process.reasons & ledger::reason_pool_not_shared) != 0;
  return pool;
}

}  // namespace cuwarden
