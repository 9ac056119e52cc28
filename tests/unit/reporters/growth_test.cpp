// A leak counts as growing by the times at which its surviving allocations were made, not by their
// number.
#include "reporters/model/growth.hpp"

#include <gtest/gtest.h>

#include <initializer_list>

namespace cuwarden {
namespace {

Growth growth_of(std::uint64_t first, std::uint64_t end,
                 std::initializer_list<std::uint64_t> births) {
  Growth growth;
  growth.first_ns = first;
  growth.end_ns = end;
  for (const std::uint64_t birth : births) growth.add(birth);
  return growth;
}

TEST(Growth, survivors_from_every_quarter_grow) {
  EXPECT_EQ(growth_of(100, 500, {100, 200, 300, 400}).name(), "growing");
}

TEST(Growth, three_quarters_of_four_are_enough) {
  EXPECT_TRUE(growth_of(0, 400, {0, 10, 120, 390}).growing());
}

TEST(Growth, many_survivors_from_the_start_do_not_grow) {
  Growth growth = growth_of(0, 4'000'000, {});
  for (std::uint64_t i = 0; i < 10'000; ++i) growth.add(i);
  EXPECT_EQ(growth.name(), "one_time");
}

TEST(Growth, two_bursts_do_not_grow) {
  EXPECT_FALSE(growth_of(0, 400, {0, 1, 2, 390, 391, 392}).growing());
}

TEST(Growth, three_survivors_do_not_grow_wherever_they_lie) {
  EXPECT_FALSE(growth_of(0, 400, {0, 150, 390}).growing());
}

TEST(Growth, a_birth_at_the_very_end_lies_in_the_last_quarter) {
  EXPECT_TRUE(growth_of(0, 7, {0, 2, 4, 7}).growing());
  EXPECT_EQ(growth_of(0, 7, {7}).by_quarter[3], 1u);
}

TEST(Growth, a_process_that_ends_at_once_has_no_quarters) {
  EXPECT_FALSE(growth_of(5, 5, {5, 5, 5, 5, 5}).growing());
}

// The process runs for a minute. Allocations of its first quarter may be meant to stay.
TEST(Growth, the_rate_counts_survivors_after_the_first_quarter) {
  constexpr std::uint64_t second = 1'000'000'000;
  Growth growth = growth_of(0, 60 * second, {});
  growth.add(0, 1'000'000);
  for (std::uint64_t i = 15; i < 60; ++i) growth.add(i * second + second / 2, 100);
  ASSERT_TRUE(growth.bytes_per_minute());
  EXPECT_NEAR(static_cast<double>(*growth.bytes_per_minute()), 6000, 60);
}

// Numbers of steps may stand for times: `first` to `last` of a program of `steps` steps.
TEST(Growth, survivors_of_each_step_grow_however_few_the_steps_are) {
  for (const std::uint64_t steps : {4u, 5u, 6u, 8u, 9u, 12u, 40u})
    for (std::uint64_t first = 1; first + 3 <= steps; ++first) {
      Growth growth{.first_ns = first, .end_ns = steps + 1};
      for (std::uint64_t step = first; step <= steps; ++step) growth.add(step, 100);
      EXPECT_TRUE(growth.growing()) << first << " to " << steps;
      EXPECT_EQ(growth.bytes_per_unit(), 100u) << first << " to " << steps;
    }
}

TEST(Growth, a_group_that_does_not_grow_has_no_rate) {
  EXPECT_FALSE(growth_of(0, 400, {0, 150, 390}).bytes_per_minute());
  EXPECT_FALSE(growth_of(5, 5, {5, 5, 5, 5, 5}).bytes_per_minute());
}

}  // namespace
}  // namespace cuwarden
