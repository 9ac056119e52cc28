// Forecasts tell how long a device's free memory lasts at the growth of its groups.
#include "reporters/tables/forecasts.hpp"

#include <gtest/gtest.h>

namespace cuwarden {
namespace {

constexpr std::uint64_t mib = 1 << 20, minute = 60'000'000'000;

// A group that takes `bytes` in each minute, for as long as `minutes`.
LeakGroup by_time(std::uint64_t bytes, std::uint64_t minutes = 8, std::int32_t device = 0,
                  Kind kind = Kind::device) {
  LeakGroup group;
  group.group.kind = kind;
  group.group.device = {device};
  group.growth.end_ns = minutes * minute;
  for (std::uint64_t i = 0; i < 8; ++i)
    group.growth.add(group.growth.end_ns * i / 8, bytes * minutes / 8);
  return group;
}

// A group that takes `bytes` in each of eight steps.
LeakGroup by_step(std::uint64_t bytes, std::int32_t device = 0, Kind kind = Kind::device) {
  LeakGroup group = by_time(1, 8, device, kind);
  group.steps_cover = true;
  group.by_step.end_ns = 8;
  for (std::uint64_t step = 0; step < 8; ++step) group.by_step.add(step, bytes);
  return group;
}

TEST(Forecasts, groups_of_a_device_add_up_by_steps_and_by_minutes) {
  const std::vector<LeakGroup> groups = {by_step(2 * mib), by_step(3 * mib), by_time(60 * mib),
                                         by_step(7 * mib, 1)};
  const auto growth = growth_of_devices(groups, {});
  ASSERT_EQ(growth.size(), 2u);
  EXPECT_EQ(growth[0].rates.bytes_per_step, 5 * mib);
  EXPECT_EQ(growth[0].rates.bytes_per_minute, 60 * mib);
  EXPECT_EQ(growth[0].fastest, &groups[1]);
  EXPECT_EQ(growth[1].device, DeviceOrdinal{1});
  EXPECT_EQ(growth[1].rates.bytes_per_step, 7 * mib);
  EXPECT_EQ(growth[1].rates.bytes_per_minute, 0u);
  const Exhaustion left = exhaustion_of(612 * mib, growth[0].rates);
  EXPECT_EQ(left.steps, 122u);
  EXPECT_EQ(left.minutes, 10u);
  EXPECT_EQ(exhaustion_of(612 * mib, growth[1].rates).minutes, std::nullopt);
}

TEST(Forecasts, groups_that_do_not_grow_or_hold_no_memory_of_the_device_say_nothing) {
  LeakGroup released = by_step(mib), once = by_step(mib);
  released.released_by_context = true;
  once.by_step = {.first_ns = 0, .end_ns = 8};
  once.by_step.add(1, mib, 8);
  const std::vector<LeakGroup> groups = {
      released,        once,      by_step(mib, -1, Kind::pinned), by_step(mib, 0, Kind::imported),
      by_time(mib, 1), by_time(0)};
  const auto growth = growth_of_devices({groups.begin(), groups.begin() + 4}, {});
  EXPECT_TRUE(growth.empty());
  EXPECT_TRUE(growth_of_devices({by_time(0)}, {}).empty());
}

TEST(Forecasts, a_group_is_judged_by_time_only_after_a_minute) {
  LeakGroup group = by_time(mib, 1);
  EXPECT_EQ(growth_of_devices({group}, {}).size(), 1u);
  group.growth.end_ns -= 1;
  EXPECT_TRUE(growth_of_devices({group}, {}).empty());
}

TEST(Forecasts, blocks_of_frameworks_are_not_counted_beside_the_memory_in_which_they_lie) {
  const std::vector<LeakGroup> segments = {by_step(20 * mib)};
  const std::vector<LeakGroup> blocks = {by_step(16 * mib, 0, Kind::framework_block),
                                         by_step(10 * mib, 0, Kind::framework_block)};
  const auto growth = growth_of_devices(segments, blocks);
  ASSERT_EQ(growth.size(), 1u);
  EXPECT_EQ(growth[0].rates.bytes_per_step, 26 * mib);
  EXPECT_EQ(growth[0].fastest, &blocks[0]);
  const std::vector<LeakGroup> slow = {blocks[1]};
  const auto faster = growth_of_devices(segments, slow);
  EXPECT_EQ(faster[0].rates.bytes_per_step, 20 * mib);
  EXPECT_EQ(faster[0].fastest, &segments[0]);
}

}  // namespace
}  // namespace cuwarden
