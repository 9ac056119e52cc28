#include "tools/cuwarden/top/top_sample.hpp"

#include <algorithm>

#include "reporters/verdicts/incident_case.hpp"
#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/ledger/read/group_sums.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

bool is_host_memory(Kind kind) { return kind == Kind::pinned || kind == Kind::registered; }

}  // namespace

Sample take_sample(const ledger::Reader& reader) {
  Sample sample;
  sample.time_ns = now_ns();
  ledger::GroupSums totals;
  for (std::uint64_t row = 1; row < reader.rows(RegionId::groups); ++row) {
    const auto group = reader.group(row);
    if (!group) continue;
    totals.add(*group);
    sample.groups.push_back({.id = group->id.value,
                             .live_bytes = ledger::GroupSums::live_bytes(*group),
                             .live_count = group->live_count,
                             .allocations = group->allocations,
                             .kind = group->kind,
                             .device = group->device});
  }
  for (std::uint64_t row = 1; row < reader.rows(RegionId::series); ++row) {
    auto series = reader.series(row);
    if (!series || series->host_rss) continue;
    totals.put_into(*series);
    if (!is_asked_for(series->kind)) continue;
    (is_host_memory(series->kind) ? sample.host_bytes : sample.device_bytes) += series->live_bytes;
    sample.live_count += series->live_count;
    sample.allocations += series->allocations;
    sample.failures += series->failures;
    sample.peak_bytes += std::max(series->peak_bytes, series->live_bytes);
    sample.series.push_back(*series);
  }
  for (std::uint64_t row = 1; row < reader.rows(RegionId::incidents); ++row) {
    if (const auto incident = reader.incident(row)) sample.rescues += rescues_of(*incident);
  }
  return sample;
}

}  // namespace cuwarden
