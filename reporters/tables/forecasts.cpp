#include "reporters/tables/forecasts.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "reporters/labels/users_frame.hpp"
#include "reporters/model/device_id.hpp"
#include "reporters/model/each_row.hpp"
#include "reporters/tables/groups/frameworks.hpp"
#include "reporters/tables/memory_tables.hpp"

namespace cuwarden {
namespace {

// True if the program asks for memory of this kind, and live memory of it takes the device's.
bool takes_device_memory(Kind kind) { return is_in_device_account(kind) && kind != Kind::imported; }

// True if the group's live memory takes the device's memory, or lies in such memory as a block.
bool fills_device(const LeakGroup& group) {
  const Kind kind = group.group.kind;
  if (group.released_by_context || group.group.device.value < 0 || group.is_code) return false;
  return takes_device_memory(kind) || kind == Kind::framework_block || kind == Kind::stream ||
         kind == Kind::module || kind == Kind::graph_exec;
}

// True if the oldest live allocation is much younger than the group: older ones were all freed, as
// in a queue of constant length.
bool rotates(const LeakGroup& group) {
  const std::uint64_t end = group.growth.end_ns;
  const std::uint64_t age = end - std::min(group.group.first_ns, end),
                      oldest_live = end - std::min(group.growth.first_ns, end);
  return oldest_live < age / 2;
}

std::uint64_t per_step(const LeakGroup& group) {
  return group.is_judged_by_steps() ? group.by_step.bytes_per_unit().value_or(0) : 0;
}

std::uint64_t per_minute(const LeakGroup& group) {
  const bool is_long = group.growth.end_ns >= group.growth.first_ns + least_growth_ns;
  return is_long && !group.is_judged_by_steps() ? group.growth.bytes_per_minute().value_or(0) : 0;
}

GrowthRates rates_of(const LeakGroup& group) { return {per_step(group), per_minute(group)}; }

// Growth by steps comes first: it is the surer one.
bool grows_faster(const GrowthRates& left, const GrowthRates& right) {
  return std::tie(left.bytes_per_step, left.bytes_per_minute) >
         std::tie(right.bytes_per_step, right.bytes_per_minute);
}

// The growing groups of a device, and what their live allocations tell.
struct Sum {
  DeviceGrowth growth;
  std::uint64_t bytes = 0;  // live bytes of the groups
  // Times of the oldest and the newest live allocation, in ns since the process's start.
  std::uint64_t first_ns = UINT64_MAX, last_ns = 0;
};
using Sums = std::map<std::int32_t, Sum>;  // by the device's ordinal

// Returns the highest live bytes of a series from one time on until before another.
std::uint64_t highest(const ledger::SeriesView& series, std::uint64_t from, std::uint64_t to) {
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < series.buckets_used && i < ledger::bucket_count; ++i) {
    const ledger::BucketView& bucket = series.buckets[i];
    if (bucket.time_ns < to && bucket.time_ns + bucket.width_ns > from)
      most = std::max(most, bucket.max_bytes);
  }
  return most;
}

// Reduces the rates in the proportion in which the device's live bytes rose less than the groups
// say. A young queue of constant length has live allocations of all ages, as a leak has, but the
// live bytes do not rise. Compares the highest live bytes in the first and the last quarter of the
// time in which the live allocations were made. Does nothing if the series are too coarse for
// that. Memory that is taken unasked has no series, and so no part in the comparison.
void reduce_to_rise(const ledger::Reader& reader, bool blocks, Sum& sum) {
  const std::uint64_t quarter = (sum.last_ns - std::min(sum.first_ns, sum.last_ns)) / 4;
  std::uint64_t before = 0, after = 0, widest = 0;
  each_row(reader, ledger::RegionId::series, &ledger::Reader::series, [&](const auto& series) {
    const bool counts =
        blocks ? series.kind == Kind::framework_block : takes_device_memory(series.kind);
    if (series.host_rss || series.device != sum.growth.device || !counts) return;
    before += highest(series, sum.first_ns, sum.first_ns + quarter);
    after += highest(series, sum.last_ns - quarter, sum.last_ns + 1);
    if (series.buckets_used != 0) widest = std::max(widest, series.buckets[0].width_ns);
  });
  if (widest == 0 || widest > quarter) return;
  // Three quarters of the bytes came between the middles of both. The series are coarse, so that a
  // rise of most of it counts as all of it.
  constexpr double between = 0.75, most = 0.75;
  const double expected = between * static_cast<double>(sum.bytes),
               rise = after > before ? static_cast<double>(after - before) : 0;
  if (rise >= most * expected) return;
  const auto reduce = [&](std::uint64_t& rate) {
    rate = static_cast<std::uint64_t>(static_cast<double>(rate) * rise / expected);
  };
  reduce(sum.growth.rates.bytes_per_step);
  reduce(sum.growth.rates.bytes_per_minute);
}

Sums sums_of(const ledger::Reader& reader, const std::vector<LeakGroup>& groups, bool blocks) {
  Sums sums;
  for (const LeakGroup& group : groups) {
    const GrowthRates rates = rates_of(group);
    if (!fills_device(group) || rotates(group) ||
        (rates.bytes_per_step == 0 && rates.bytes_per_minute == 0))
      continue;
    Sum& sum = sums[group.group.device.value];
    DeviceGrowth& growth = sum.growth;
    growth.device = group.group.device;
    growth.rates.bytes_per_step += rates.bytes_per_step;
    growth.rates.bytes_per_minute += rates.bytes_per_minute;
    if (growth.fastest == nullptr || grows_faster(rates, rates_of(*growth.fastest)))
      growth.fastest = &group;
    if (is_implicit(group.group.kind)) continue;
    sum.bytes += group.bytes;
    sum.first_ns = std::min(sum.first_ns, group.growth.first_ns);
    sum.last_ns = std::max(sum.last_ns, group.last_ns.value_or(group.growth.end_ns));
  }
  for (auto& [device, sum] : sums) reduce_to_rise(reader, blocks, sum);
  return sums;
}

}  // namespace

std::vector<DeviceGrowth> growth_of_devices(const ledger::Reader& reader,
                                            const std::vector<LeakGroup>& groups,
                                            const std::vector<LeakGroup>& blocks) {
  Sums sums = sums_of(reader, groups, false);
  for (const auto& [device, sum] : sums_of(reader, blocks, true)) {
    DeviceGrowth& growth = sums[device].growth;
    // The call stack of a block says more than that of the memory in which it lies.
    if (!grows_faster(growth.rates, sum.growth.rates)) {
      growth = sum.growth;
      growth.idle_bytes = idle_of_pytorch(reader, growth.device);
    }
  }
  std::vector<DeviceGrowth> result;
  for (const auto& [device, sum] : sums)
    if (sum.growth.rates.bytes_per_step != 0 || sum.growth.rates.bytes_per_minute != 0)
      result.push_back(sum.growth);
  return result;
}

Exhaustion exhaustion_of(std::uint64_t free_bytes, const DeviceGrowth& growth) {
  const std::uint64_t supply = free_bytes + growth.idle_bytes;
  const GrowthRates& rates = growth.rates;
  Exhaustion left;
  if (rates.bytes_per_step != 0) left.steps = supply / rates.bytes_per_step;
  if (rates.bytes_per_minute != 0) left.minutes = supply / rates.bytes_per_minute;
  return left;
}

void put_forecasts(const ledger::Reader& reader, const std::vector<ledger::SeriesView>& series,
                   const std::vector<LeakGroup>& groups, const std::vector<LeakGroup>& blocks,
                   const CallFrames& frames, Put<model::Forecast> put) {
  const std::vector<DeviceGrowth> all = growth_of_devices(reader, groups, blocks);
  each_row(reader, ledger::RegionId::devices, &ledger::Reader::device, [&](const auto& device) {
    const auto growth = std::ranges::find(all, device.ordinal, &DeviceGrowth::device);
    if (growth == all.end() || device.at == ledger::ReadingAt::never) return;
    const std::uint64_t free_bytes = free_bytes_now(device, series);
    const Exhaustion left = exhaustion_of(free_bytes, *growth);
    model::Forecast row;
    row.device = static_cast<model::Id>(device.ordinal.value);
    row.free_bytes = free_bytes + growth->idle_bytes;
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
