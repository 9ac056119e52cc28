#include "tools/cuwarden/top/recent_rates.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace cuwarden {
namespace {

constexpr std::uint64_t window_ns = 10'000'000'000;

double difference(std::uint64_t now, std::uint64_t then) {
  return static_cast<double>(now) - static_cast<double>(then);
}

}  // namespace

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
