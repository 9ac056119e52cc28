#include "reporters/tables/forecasts.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <tuple>

#include "reporters/labels/users_frame.hpp"
#include "reporters/model/each_row.hpp"
#include "reporters/tables/groups/frameworks.hpp"
#include "reporters/tables/memory_tables.hpp"
#include "runtime_hooks/ledger/read/free_bytes.hpp"

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

using Groups = std::vector<const LeakGroup*>;

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

// The last quarter of the time in which the live allocations of growing groups were made, in ns
// since the process's start.
struct LastQuarter {
  explicit LastQuarter(const Groups& groups) {
    std::uint64_t first_ns = UINT64_MAX;
    for (const LeakGroup* const group : groups) {
      first_ns = std::min(first_ns, group->growth.first_ns);
      end_ns = std::max(end_ns, group->last_ns.value_or(group->growth.end_ns));
    }
    length_ns = (end_ns - std::min(first_ns, end_ns)) / 4;
  }
  std::uint64_t end_ns = 0, length_ns = 0;
};

// Returns the bytes by which the groups grow in the quarter if each has grown evenly since its
// oldest live allocation.
double expected_rise(const Groups& groups, const LastQuarter& quarter) {
  double bytes = 0;
  for (const LeakGroup* const group : groups) {
    const std::uint64_t age_ns = quarter.end_ns - std::min(group->growth.first_ns, quarter.end_ns);
    bytes += static_cast<double>(group->bytes) * static_cast<double>(quarter.length_ns) /
             static_cast<double>(std::max(age_ns, quarter.length_ns));
  }
  return bytes;
}

// Returns the bytes by which the live bytes of the device rose in the quarter: from the highest in
// the quarter before it to the highest in it. Null if the series are too coarse to tell. `blocks`:
// true if the live blocks of frameworks are meant.
std::optional<double> rise_in(const ledger::Reader& reader, DeviceOrdinal device,
                              const LastQuarter& quarter, bool blocks) {
  const std::uint64_t begin_ns = quarter.end_ns - quarter.length_ns;
  std::uint64_t before = 0, after = 0, widest = 0;
  each_row(reader, ledger::RegionId::series, &ledger::Reader::series, [&](const auto& series) {
    const bool counts =
        blocks ? series.kind == Kind::framework_block : takes_device_memory(series.kind);
    if (series.host_rss || !counts || series.device != device) return;
    before += highest(series, begin_ns - std::min(quarter.length_ns, begin_ns), begin_ns);
    after += highest(series, begin_ns, quarter.end_ns + 1);
    if (series.buckets_used != 0) widest = std::max(widest, series.buckets[0].width_ns);
  });
  if (widest == 0 || widest > quarter.length_ns) return std::nullopt;
  return after > before ? static_cast<double>(after - before) : 0;
}

void add_rates(const Groups& groups, double share, GrowthRates& sum) {
  const auto part = [&](std::uint64_t rate) {
    return static_cast<std::uint64_t>(static_cast<double>(rate) * share);
  };
  for (const LeakGroup* const group : groups) {
    sum.bytes_per_step += part(per_step(*group));
    sum.bytes_per_minute += part(per_minute(*group));
  }
}

// Returns the growth of a device by its growing groups.
//
// A young queue of constant length has live allocations of all ages, as a leak has, but the live
// bytes of the device do not rise. If they rose less than the groups say, only the groups count of
// which nothing was ever freed. If these say too much as well, the rates count in proportion.
// Objects such as streams have no series of live bytes, and so no part in the comparison.
DeviceGrowth growth_of(const ledger::Reader& reader, const Groups& groups, bool blocks) {
  Groups asked_for, implicit, kept;
  for (const LeakGroup* const group : groups) {
    (is_implicit(group->group.kind) ? implicit : asked_for).push_back(group);
    if (!is_implicit(group->group.kind) && group->group.frees == 0) kept.push_back(group);
  }
  // The series are coarse: a rise of most of what is expected counts as all of it.
  constexpr double most = 0.75;
  const LastQuarter quarter(asked_for);
  const auto rise = rise_in(reader, groups.front()->group.device, quarter, blocks);
  const auto explain = [&](const Groups& some) {
    return !rise || *rise >= most * expected_rise(some, quarter);
  };
  const Groups& counted = kept.empty() || explain(asked_for) ? asked_for : kept;
  DeviceGrowth growth;
  growth.device = groups.front()->group.device;
  add_rates(counted, explain(counted) ? 1 : *rise / expected_rise(counted, quarter), growth.rates);
  add_rates(implicit, 1, growth.rates);
  for (const Groups* const some : std::initializer_list<const Groups*>{&counted, &implicit})
    for (const LeakGroup* const group : *some)
      if (growth.fastest == nullptr || grows_faster(rates_of(*group), rates_of(*growth.fastest)))
        growth.fastest = group;
  return growth;
}

// Returns the growth of each device with growing groups, by the device's ordinal.
std::map<std::int32_t, DeviceGrowth> growths(const ledger::Reader& reader,
                                             const std::vector<LeakGroup>& groups, bool blocks) {
  std::map<std::int32_t, Groups> by_device;
  for (const LeakGroup& group : groups) {
    const GrowthRates rates = rates_of(group);
    if (fills_device(group) && !rotates(group) &&
        (rates.bytes_per_step != 0 || rates.bytes_per_minute != 0))
      by_device[group.group.device.value].push_back(&group);
  }
  std::map<std::int32_t, DeviceGrowth> result;
  for (const auto& [device, some] : by_device) result[device] = growth_of(reader, some, blocks);
  return result;
}

}  // namespace

std::vector<DeviceGrowth> growth_of_devices(const ledger::Reader& reader,
                                            const std::vector<LeakGroup>& groups,
                                            const std::vector<LeakGroup>& blocks) {
  std::map<std::int32_t, DeviceGrowth> all = growths(reader, groups, false);
  for (const auto& [device, of_blocks] : growths(reader, blocks, true)) {
    DeviceGrowth& growth = all[device];
    // The call stack of a block says more than that of the memory in which it lies.
    if (!grows_faster(growth.rates, of_blocks.rates)) {
      growth = of_blocks;
      growth.idle_bytes = idle_of_pytorch(reader, growth.device);
    }
  }
  std::vector<DeviceGrowth> result;
  for (const auto& [device, growth] : all)
    if (growth.rates.bytes_per_step != 0 || growth.rates.bytes_per_minute != 0)
      result.push_back(growth);
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
    const std::uint64_t free_bytes = ledger::free_bytes_now(device, series);
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
