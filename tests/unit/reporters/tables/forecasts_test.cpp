// Forecasts tell how long a device's free memory lasts at the growth of its groups.
#include "reporters/tables/forecasts.hpp"

#include <gtest/gtest.h>

#include "tests/unit/reporters/fake_ledger.hpp"
#include "tests/unit/reporters/units.hpp"

namespace cuwarden {
namespace {

using test::mib;

constexpr std::uint64_t minute = 60'000'000'000;

// A group that takes `bytes` in each minute, for as long as `minutes`.
LeakGroup by_time(std::uint64_t bytes, std::uint64_t minutes = 8, std::int32_t device = 0,
                  Kind kind = Kind::device) {
  LeakGroup group;
  group.group.kind = kind;
  group.group.device = {device};
  group.growth.end_ns = minutes * minute;
  group.bytes = bytes * minutes;
  for (std::uint64_t i = 0; i < 8; ++i)
    group.growth.add(group.growth.end_ns * i / 8, bytes * minutes / 8);
  return group;
}

// A group that takes `bytes` in each of eight steps.
LeakGroup by_step(std::uint64_t bytes, std::int32_t device = 0, Kind kind = Kind::device) {
  LeakGroup group = by_time(bytes, 8, device, kind);
  group.steps_cover = true;
  group.by_step.end_ns = 8;
  for (std::uint64_t step = 0; step < 8; ++step) group.by_step.add(step, bytes);
  return group;
}

// Growth of groups and blocks in a ledger whose series say nothing, or what a test adds.
struct Forecasts : testing::Test {
  std::vector<DeviceGrowth> growth(const std::vector<LeakGroup>& groups,
                                   const std::vector<LeakGroup>& blocks = {}) const {
    return growth_of_devices(ledger.reader(), groups, blocks);
  }
  // Adds the live bytes of device 0 in eight minutes, each with the highest of them.
  void add_series(const std::vector<std::uint64_t>& highest, Kind kind = Kind::device) {
    ledger::SeriesView series;
    series.kind = kind;
    series.device = {0};
    for (const std::uint64_t bytes : highest) {
      series.buckets[series.buckets_used] = {series.buckets_used * minute, minute, bytes, bytes};
      ++series.buckets_used;
    }
    ledger.series.push_back(series);
  }
  test::FakeLedger ledger;
};

TEST_F(Forecasts, groups_of_a_device_add_up_by_steps_and_by_minutes) {
  const std::vector<LeakGroup> groups = {by_step(2 * mib), by_step(3 * mib), by_time(60 * mib),
                                         by_step(7 * mib, 1)};
  const auto found = growth(groups);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].rates.bytes_per_step, 5 * mib);
  EXPECT_EQ(found[0].rates.bytes_per_minute, 60 * mib);
  EXPECT_EQ(found[0].fastest, &groups[1]);
  EXPECT_EQ(found[1].device, DeviceOrdinal{1});
  EXPECT_EQ(found[1].rates.bytes_per_step, 7 * mib);
  EXPECT_EQ(found[1].rates.bytes_per_minute, 0u);
  const Exhaustion left = exhaustion_of(612 * mib, found[0]);
  EXPECT_EQ(left.steps, 122u);
  EXPECT_EQ(left.minutes, 10u);
  EXPECT_EQ(exhaustion_of(612 * mib, found[1]).minutes, std::nullopt);
}

TEST_F(Forecasts, groups_that_do_not_grow_or_do_not_fill_the_device_say_nothing) {
  EXPECT_EQ(growth({by_step(mib)}).size(), 1u);
  EXPECT_EQ(growth({by_step(mib, 0, Kind::graph_exec)}).size(), 1u);
  LeakGroup released = by_step(mib), once = by_step(mib), code = by_step(mib, 0, Kind::module);
  released.released_by_context = true;
  once.by_step = {.first_ns = 0, .end_ns = 8};
  once.by_step.add(1, mib, 8);
  code.is_code = true;
  for (const LeakGroup& group :
       {released, once, code, by_step(mib, -1, Kind::pinned), by_step(mib, 0, Kind::imported),
        by_step(mib, 0, Kind::managed), by_time(0)})
    EXPECT_TRUE(growth({group}).empty()) << kind_name(group.group.kind);
}

TEST_F(Forecasts, a_group_is_judged_by_time_only_after_a_minute) {
  LeakGroup group = by_time(mib, 1);
  EXPECT_EQ(growth({group}).size(), 1u);
  group.growth.end_ns -= 1;
  EXPECT_TRUE(growth({group}).empty());
}

TEST_F(Forecasts, a_queue_of_constant_length_does_not_fill_the_device) {
  const std::vector<LeakGroup> groups = {by_step(10 * mib)};
  add_series({80 * mib, 80 * mib, 80 * mib, 80 * mib, 80 * mib, 80 * mib, 80 * mib, 80 * mib});
  EXPECT_TRUE(growth(groups).empty());
}

TEST_F(Forecasts, a_leak_beside_a_young_queue_is_told_from_it) {
  std::vector<LeakGroup> groups = {by_step(10 * mib), by_step(2 * mib),
                                   by_step(mib, 0, Kind::graph_exec)};
  groups[0].group.frees = 8;
  add_series({82 * mib, 84 * mib, 86 * mib, 88 * mib, 90 * mib, 92 * mib, 94 * mib, 96 * mib});
  const auto found = growth(groups);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rates.bytes_per_step, 3 * mib);
  EXPECT_EQ(found[0].fastest, &groups[1]);
}

TEST_F(Forecasts, a_group_that_frees_some_counts_if_the_live_bytes_rise_by_it) {
  std::vector<LeakGroup> groups = {by_step(10 * mib), by_step(2 * mib)};
  groups[0].group.frees = 1;
  add_series({12 * mib, 24 * mib, 36 * mib, 48 * mib, 60 * mib, 72 * mib, 84 * mib, 96 * mib});
  const auto found = growth(groups);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rates.bytes_per_step, 12 * mib);
  EXPECT_EQ(found[0].fastest, &groups[0]);
}

TEST_F(Forecasts, a_queue_does_not_fill_the_device_if_the_program_rests_at_its_end) {
  LeakGroup group = by_step(10 * mib);
  group.last_ns = group.growth.end_ns;
  group.growth.end_ns += 30 * minute;
  add_series({80 * mib, 80 * mib, 80 * mib, 80 * mib, 80 * mib, 80 * mib, 80 * mib, 80 * mib});
  EXPECT_TRUE(growth({group}).empty());
}

TEST_F(Forecasts, growth_counts_in_full_if_the_series_are_too_coarse_to_tell) {
  LeakGroup group = by_time(10 * mib, 3);
  add_series({80 * mib, 80 * mib, 80 * mib, 80 * mib});
  EXPECT_EQ(growth({group}).size(), 1u);
}

TEST_F(Forecasts, a_group_whose_older_allocations_were_all_freed_does_not_count) {
  LeakGroup group = by_step(mib);
  group.growth.first_ns += 8 * minute;
  group.growth.end_ns += 8 * minute;
  group.group.first_ns = 1 * minute;
  EXPECT_EQ(growth({group}).size(), 1u);
  group.group.first_ns = 0;
  group.growth.first_ns += minute;
  EXPECT_TRUE(growth({group}).empty());
}

TEST_F(Forecasts, growth_counts_as_far_as_the_live_bytes_rose) {
  const std::vector<LeakGroup> groups = {by_step(10 * mib)};
  add_series({20 * mib, 20 * mib, 30 * mib, 30 * mib, 40 * mib, 40 * mib, 50 * mib, 50 * mib});
  ASSERT_EQ(growth(groups).size(), 1u);
  EXPECT_EQ(growth(groups)[0].rates.bytes_per_step, 5 * mib);
  add_series({0, 0, 9 * mib, 9 * mib, 9 * mib, 9 * mib, 99 * mib, 99 * mib}, Kind::vmm);
  EXPECT_EQ(growth(groups)[0].rates.bytes_per_step, 10 * mib);
}

TEST_F(Forecasts, blocks_of_frameworks_are_not_counted_beside_the_memory_in_which_they_lie) {
  const std::vector<LeakGroup> segments = {by_step(20 * mib)};
  const std::vector<LeakGroup> blocks = {by_step(16 * mib, 0, Kind::framework_block),
                                         by_step(10 * mib, 0, Kind::framework_block)};
  const auto found = growth(segments, blocks);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rates.bytes_per_step, 26 * mib);
  EXPECT_EQ(found[0].fastest, &blocks[0]);
  const std::vector<LeakGroup> slow = {blocks[1]};
  const auto faster = growth(segments, slow);
  EXPECT_EQ(faster[0].rates.bytes_per_step, 20 * mib);
  EXPECT_EQ(faster[0].fastest, &segments[0]);
}

TEST_F(Forecasts, blocks_fill_what_their_framework_holds_before_they_fill_the_device) {
  ledger::FrameworkPoolView pool;
  pool.framework = "PyTorch";
  pool.device = {0};
  pool.reserved_bytes = 60 * mib;
  pool.allocated_bytes = 10 * mib;
  ledger.framework_pools.push_back(pool);
  pool.framework_pool = "pinned";
  pool.reserved_bytes = ledger::unknown_value;
  ledger.framework_pools.push_back(pool);
  const auto blocks = growth({}, {by_step(10 * mib, 0, Kind::framework_block)});
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(exhaustion_of(50 * mib, blocks[0]).steps, 10u);
  const auto groups = growth({by_step(10 * mib)});
  EXPECT_EQ(exhaustion_of(50 * mib, groups[0]).steps, 5u);
}

}  // namespace
}  // namespace cuwarden
