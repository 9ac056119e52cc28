#include "reporters/tables/forecasts.hpp"

#include <algorithm>
#include <map>

#include "reporters/model/device_id.hpp"
#include "reporters/model/each_row.hpp"
#include "reporters/owners/users_frame.hpp"
#include "reporters/tables/memory_tables.hpp"

namespace cuwarden {
namespace {

// Over a shorter time, the allocations of a program's start look like growth.
constexpr std::uint64_t least_time_ns = 60'000'000'000;

std::uint64_t per_step(const LeakGroup& group) {
  return group.is_judged_by_steps() ? group.by_step.bytes_per_unit().value_or(0) : 0;
}

std::uint64_t per_minute(const LeakGroup& group) {
  const bool is_long = group.growth.end_ns >= group.growth.first_ns + least_time_ns;
  return is_long && !group.is_judged_by_steps() ? group.growth.bytes_per_minute().value_or(0) : 0;
}

bool grows_faster(const LeakGroup& left, const LeakGroup& right) {
  if (per_step(left) != per_step(right)) return per_step(left) > per_step(right);
  return per_minute(left) > per_minute(right);
}

// Growth by the device's ordinal.
using Sums = std::map<std::int32_t, DeviceGrowth>;

Sums sums_of(const std::vector<LeakGroup>& groups) {
  Sums sums;
  for (const LeakGroup& group : groups) {
    const std::uint64_t by_step = per_step(group), by_minute = per_minute(group);
    if (group.released_by_context || group.group.device.value < 0 ||
        group.group.kind == Kind::imported || (by_step == 0 && by_minute == 0))
      continue;
    DeviceGrowth& sum = sums[group.group.device.value];
    sum.device = group.group.device;
    sum.rates.bytes_per_step += by_step;
    sum.rates.bytes_per_minute += by_minute;
    if (sum.fastest == nullptr || grows_faster(group, *sum.fastest)) sum.fastest = &group;
  }
  return sums;
}

}  // namespace

std::vector<DeviceGrowth> growth_of_devices(const std::vector<LeakGroup>& groups,
                                            const std::vector<LeakGroup>& blocks) {
  Sums sums = sums_of(groups);
  for (const auto& [device, growth] : sums_of(blocks)) {
    DeviceGrowth& sum = sums[device];
    GrowthRates& rates = sum.rates;
    // The call stack of a block says more than that of the memory in which it lies.
    if (growth.rates.bytes_per_step >= rates.bytes_per_step) sum.fastest = growth.fastest;
    sum.device = growth.device;
    rates.bytes_per_step = std::max(rates.bytes_per_step, growth.rates.bytes_per_step);
    rates.bytes_per_minute = std::max(rates.bytes_per_minute, growth.rates.bytes_per_minute);
  }
  std::vector<DeviceGrowth> result;
  for (const auto& [device, growth] : sums) result.push_back(growth);
  return result;
}

Exhaustion exhaustion_of(std::uint64_t free_bytes, const GrowthRates& rates) {
  Exhaustion left;
  if (rates.bytes_per_step != 0) left.steps = free_bytes / rates.bytes_per_step;
  if (rates.bytes_per_minute != 0) left.minutes = free_bytes / rates.bytes_per_minute;
  return left;
}

void put_forecasts(const ledger::Reader& reader, const std::vector<ledger::SeriesView>& series,
                   const std::vector<LeakGroup>& groups, const std::vector<LeakGroup>& blocks,
                   const CallFrames& frames, Put<model::Forecast> put) {
  const std::vector<DeviceGrowth> all = growth_of_devices(groups, blocks);
  each_row(reader, ledger::RegionId::devices, &ledger::Reader::device, [&](const auto& device) {
    const auto growth = std::ranges::find(all, device.ordinal, &DeviceGrowth::device);
    if (growth == all.end() || device.at == ledger::ReadingAt::never) return;
    const std::uint64_t free_bytes = free_bytes_now(device, series);
    const Exhaustion left = exhaustion_of(free_bytes, growth->rates);
    model::Forecast row;
    row.device = static_cast<model::Id>(device.ordinal.value);
    row.free_bytes = free_bytes;
    if (left.steps) row.growth_bytes_per_step = growth->rates.bytes_per_step;
    row.steps_left = left.steps;
    if (left.minutes) row.growth_bytes_per_minute = growth->rates.bytes_per_minute;
    row.minutes_left = left.minutes;
    row.stack = frames.known_stack(growth->fastest->group.stack);
    row.where = users_location(frames.named_frames(row.stack));
    put(row);
  });
}

}  // namespace cuwarden
