// A leak counts as growing by the times at which its surviving allocations were made, not by their
// number.
#include "reporters/model/growth.hpp"

#include <gtest/gtest.h>

#include <initializer_list>

namespace cuwarden {
namespace {

// Growth by quarters alone, as for steps.
Growth by_quarters(std::uint64_t first, std::uint64_t end,
                   std::initializer_list<std::uint64_t> births) {
  Growth growth{.first_ns = first, .end_ns = end, .has_quarters_only = true};
  for (const std::uint64_t birth : births) growth.add(birth);
  return growth;
}

// Growth of a call stack that makes an allocation at each of the times 0 to `end` - 1 and frees it
// after `life`, but for each one whose time `is_kept`.
template <class IsKept>
Growth growth_of(std::uint64_t end, std::uint64_t life, const IsKept& is_kept) {
  Growth growth{.end_ns = end, .longest_life_ns = life};
  bool has_first = false;
  for (std::uint64_t time = 0; time < end; ++time) {
    if (!is_kept(time) && time + life < end) {
      ++growth.frees;
      continue;
    }
    if (!has_first) growth.first_ns = time;
    has_first = true;
    growth.add(time);
  }
  return growth;
}

TEST(Growth, one_in_a_hundred_that_is_never_freed_grows) {
  EXPECT_EQ(growth_of(10'000, 50, [](auto time) { return time % 100 == 7; }).name(), "growing");
}

TEST(Growth, a_leak_that_begins_late_grows) {
  EXPECT_EQ(growth_of(10'000, 50, [](auto time) { return time > 8000 && time % 20 == 0; }).name(),
            "growing");
}

TEST(Growth, a_queue_or_a_cache_that_frees_its_oldest_is_steady) {
  EXPECT_EQ(growth_of(10'000, 2000, [](auto) { return false; }).name(), "steady");
  EXPECT_EQ(growth_of(100, 40, [](auto) { return false; }).name(), "steady");
}

TEST(Growth, many_that_are_kept_from_the_start_are_a_burst) {
  EXPECT_EQ(growth_of(10'000, 50, [](auto time) { return time < 500; }).name(), "burst");
  Growth growth{.end_ns = 4'000'000};
  for (std::uint64_t i = 0; i < 10'000; ++i) growth.add(i);
  EXPECT_EQ(growth.name(), "burst");
}

TEST(Growth, a_handful_is_no_growth_wherever_it_lies) {
  EXPECT_FALSE(growth_of(10'000, 50, [](auto time) { return time % 4000 == 7; }).growing());
  Growth growth{.end_ns = 400};
  for (const std::uint64_t birth : {0u, 10u, 20u, 180u, 240u, 300u, 310u}) growth.add(birth);
  EXPECT_EQ(growth.name(), "one_time");
}

TEST(Growth, five_at_even_distances_until_the_end_grow) {
  Growth growth{.end_ns = 400};
  for (const std::uint64_t birth : {0u, 80u, 160u, 240u, 320u}) growth.add(birth);
  EXPECT_EQ(growth.name(), "growing");
}

TEST(Growth, by_quarters_alone_four_in_three_quarters_grow) {
  EXPECT_EQ(by_quarters(100, 500, {100, 200, 300, 400}).name(), "growing");
  EXPECT_TRUE(by_quarters(0, 400, {0, 10, 120, 390}).growing());
  EXPECT_FALSE(by_quarters(0, 400, {0, 1, 2, 390, 391, 392}).growing());
  EXPECT_FALSE(by_quarters(0, 400, {0, 150, 390}).growing());
}

TEST(Growth, a_birth_at_the_very_end_lies_in_the_last_quarter) {
  EXPECT_TRUE(by_quarters(0, 7, {0, 2, 4, 7}).growing());
  EXPECT_EQ(by_quarters(0, 7, {7}).by_quarter[3], 1u);
}

TEST(Growth, a_process_that_ends_at_once_has_no_quarters) {
  EXPECT_FALSE(by_quarters(5, 5, {5, 5, 5, 5, 5}).growing());
}

// The process runs for a minute. Allocations of its first quarter may be meant to stay.
TEST(Growth, the_rate_counts_survivors_after_the_first_quarter) {
  constexpr std::uint64_t second = 1'000'000'000;
  Growth growth{.end_ns = 60 * second};
  growth.add(0, 1'000'000);
  for (std::uint64_t i = 15; i < 60; ++i) growth.add(i * second + second / 2, 100);
  ASSERT_TRUE(growth.bytes_per_minute());
  EXPECT_NEAR(static_cast<double>(*growth.bytes_per_minute()), 6000, 60);
}

// Numbers of steps may stand for times: `first` to `last` of a program of `steps` steps.
TEST(Growth, survivors_of_each_step_grow_however_few_the_steps_are) {
  for (const std::uint64_t steps : {4u, 5u, 6u, 8u, 9u, 12u, 40u})
    for (std::uint64_t first = 1; first + 3 <= steps; ++first) {
      Growth growth{.first_ns = first, .end_ns = steps + 1, .has_quarters_only = true};
      for (std::uint64_t step = first; step <= steps; ++step) growth.add(step, 100);
      EXPECT_TRUE(growth.growing()) << first << " to " << steps;
      EXPECT_EQ(growth.bytes_per_unit(), 100u) << first << " to " << steps;
    }
}

TEST(Growth, a_group_that_does_not_grow_has_no_rate) {
  EXPECT_FALSE(by_quarters(0, 400, {0, 150, 390}).bytes_per_minute());
  EXPECT_FALSE(by_quarters(5, 5, {5, 5, 5, 5, 5}).bytes_per_minute());
}

}  // namespace
}  // namespace cuwarden
