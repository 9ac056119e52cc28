#include "reporters/tables/forecasts.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "reporters/model/device_id.hpp"
#include "reporters/model/each_row.hpp"
#include "reporters/owners/users_frame.hpp"
#include "reporters/tables/memory_tables.hpp"

namespace cuwarden {
namespace {

// Over a shorter time, the allocations of a program's start look like growth.
constexpr std::uint64_t least_time_ns = 60'000'000'000;

// True if live memory of the group takes the device's memory, or is a block in such memory.
bool fills_device(const LeakGroup& group) {
  const Kind kind = group.group.kind;
  if (group.released_by_context || group.group.device.value < 0 || group.is_code) return false;
  return kind == Kind::framework_block || kind == Kind::stream || kind == Kind::module ||
         kind == Kind::graph_exec || (is_in_device_account(kind) && kind != Kind::imported);
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
  const bool is_long = group.growth.end_ns >= group.growth.first_ns + least_time_ns;
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
  std::uint64_t bytes = 0;                          // live bytes of the groups
  std::uint64_t first_ns = UINT64_MAX, end_ns = 0;  // time from the oldest of them to the end
};
using Sums = std::map<std::int32_t, Sum>;  // by the device's ordinal

// Returns the highest live bytes of a series between two times.
std::uint64_t highest(const ledger::SeriesView& series, std::uint64_t from, std::uint64_t to) {
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < series.buckets_used && i < ledger::bucket_count; ++i) {
    const ledger::BucketView& bucket = series.buckets[i];
    if (bucket.time_ns < to && bucket.time_ns + bucket.width_ns > from)
      most = std::max(most, bucket.max_bytes);
  }
  return most;
}

// A queue of constant length that is still young has live allocations of all ages, too. So the
// rates count in the proportion in which the device's live bytes rose: their highest value in the
// last quarter of the time is compared with that in the first. Kinds without a series are not
// compared.
void keep_real_growth(const ledger::Reader& reader, bool blocks, Sum& sum) {
  const std::uint64_t quarter = (sum.end_ns - std::min(sum.first_ns, sum.end_ns)) / 4;
  std::uint64_t before = 0, after = 0;
  each_row(reader, ledger::RegionId::series, &ledger::Reader::series, [&](const auto& series) {
    if (series.host_rss || series.device != sum.growth.device) return;
    if (blocks ? series.kind != Kind::framework_block : !is_in_device_account(series.kind)) return;
    before += highest(series, sum.first_ns, sum.first_ns + quarter);
    after += highest(series, sum.end_ns - quarter, sum.end_ns);
  });
  if (after == 0) return;
  const double expected = 0.75 * static_cast<double>(sum.bytes);
  const double rise = after > before ? static_cast<double>(after - before) : 0;
  // The series are coarse: a rise that is nearly as great as expected is.
  constexpr double near = 0.75;
  const double share = rise < near * expected ? rise / expected : 1;
  const auto scale = [&](std::uint64_t& rate) {
    rate = static_cast<std::uint64_t>(static_cast<double>(rate) * share);
  };
  scale(sum.growth.rates.bytes_per_step);
  scale(sum.growth.rates.bytes_per_minute);
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
    sum.bytes += group.bytes;
    sum.first_ns = std::min(sum.first_ns, group.growth.first_ns);
    sum.end_ns = std::max(sum.end_ns, group.growth.end_ns);
  }
  for (auto& [device, sum] : sums) keep_real_growth(reader, blocks, sum);
  return sums;
}

// Returns the bytes that frameworks hold on the device, and have not handed out.
std::uint64_t idle_of_frameworks(const ledger::Reader& reader, DeviceOrdinal device) {
  std::uint64_t idle = 0;
  each_row(reader, ledger::RegionId::frameworks, &ledger::Reader::framework_pool,
           [&](const auto& pool) {
             if (pool.device == device && pool.incident.value == 0 && pool.stack.value == 0 &&
                 pool.framework == "PyTorch" && pool.reserved_bytes > pool.allocated_bytes)
               idle += pool.reserved_bytes - pool.allocated_bytes;
           });
  return idle;
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
      growth.idle_bytes = idle_of_frameworks(reader, growth.device);
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
