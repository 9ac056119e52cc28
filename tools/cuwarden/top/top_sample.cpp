#include "tools/cuwarden/top/top_sample.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "reporters/verdicts/incident_case.hpp"
#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/ledger/read/group_sums.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

constexpr std::uint64_t window_ns = 10'000'000'000;

bool is_host_memory(Kind kind) { return kind == Kind::pinned || kind == Kind::registered; }

double difference(std::uint64_t now, std::uint64_t then) {
  return static_cast<double>(now) - static_cast<double>(then);
}

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

void Recent::add(Sample sample) {
  samples_.push_back(std::move(sample));
  const std::uint64_t now = samples_.back().time_ns;
  while (samples_.size() > 2 && now - samples_[1].time_ns >= window_ns) samples_.pop_front();
  oldest_groups_.clear();
  const auto& groups = samples_.front().groups;
  for (std::size_t i = 0; i < groups.size(); ++i) oldest_groups_[groups[i].id] = i;
}

double Recent::seconds() const {
  return std::max(difference(samples_.back().time_ns, samples_.front().time_ns) / 1e9, 1e-3);
}

Change Recent::of_group(const GroupSample& now) const {
  const auto known = oldest_groups_.find(now.id);
  const GroupSample then =  // for a new stack: zeros
      known == oldest_groups_.end() ? GroupSample{} : samples_.front().groups[known->second];
  return {difference(now.live_bytes, then.live_bytes) / seconds(),
          difference(now.allocations, then.allocations) / seconds()};
}

Change Recent::of_all() const {
  const Sample& now = samples_.back();
  const Sample& then = samples_.front();
  return {difference(now.device_bytes + now.host_bytes, then.device_bytes + then.host_bytes) /
              seconds(),
          difference(now.allocations, then.allocations) / seconds()};
}

std::vector<GroupSample> groups_by_bytes(const Recent& recent) {
  std::vector<GroupSample> groups;
  for (const GroupSample& group : recent.newest().groups) {
    if (group.live_count == 0 && recent.of_group(group).allocations_per_second <= 0) continue;
    // The ledger does not know the bytes of a device's first context.
    if (group.kind == Kind::context && group.live_bytes == 0) continue;
    groups.push_back(group);
  }
  std::ranges::stable_sort(groups, std::greater(), &GroupSample::live_bytes);
  return groups;
}

}  // namespace cuwarden
