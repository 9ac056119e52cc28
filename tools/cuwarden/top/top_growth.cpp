#include "tools/cuwarden/top/top_growth.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "reporters/tables/groups/frameworks.hpp"
#include "reporters/tables/groups/leak_groups.hpp"
#include "runtime_hooks/core/clock.hpp"
#include "tools/cuwarden/top/top_sample.hpp"

namespace cuwarden {
namespace {

constexpr std::uint64_t share = 50;

}  // namespace

void GrowingGroups::look(const ledger::Reader& reader, std::uint64_t now_ns) {
  const std::uint64_t start_ns = reader.process().start_monotonic_ns;
  if (now_ns < next_look_ns_ || now_ns < start_ns + least_growth_ns) return;
  const std::uint64_t begun_ns = time_ns_of(CLOCK_MONOTONIC);
  rates_.clear();
  devices_.clear();
  const auto sums = std::make_unique<ledger::GroupSums>();
  std::vector<LeakGroup> groups = live_groups(reader, now_ns - start_ns, *sums);
  std::erase_if(groups, [](const LeakGroup& group) {
    return group.released_by_context ||
           group.growth.end_ns < group.growth.first_ns + least_growth_ns ||
           !group.judged_growth().growing();
  });
  for (const LeakGroup& group : groups) {
    Rate rate{group.growth.bytes_per_minute().value_or(0)};
    if (group.is_judged_by_steps()) {
      rate.bytes_per_step = group.by_step.bytes_per_unit();
      rate.first_step = group.by_step.first_ns;
    }
    rates_[group.group.id.value] = rate;
  }
  const std::vector<LeakGroup> blocks = take_blocks(groups);
  devices_ = growth_of_devices(reader, groups, blocks);
  for (DeviceGrowth& device : devices_) device.fastest = nullptr;  // the groups are gone
  next_look_ns_ = now_ns + (time_ns_of(CLOCK_MONOTONIC) - begun_ns) * (share + 1);
}

std::optional<GrowingGroups::Rate> GrowingGroups::rate_of(std::uint32_t group) const {
  const auto found = rates_.find(group);
  return found == rates_.end() ? std::nullopt : std::optional(found->second);
}

DeviceGrowth GrowingGroups::growth_of(DeviceOrdinal device) const {
  const auto found = std::ranges::find(devices_, device, &DeviceGrowth::device);
  return found == devices_.end() ? DeviceGrowth{} : *found;
}

}  // namespace cuwarden
