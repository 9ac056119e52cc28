#include "runtime_hooks/ledger/format/longest_life.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace cuwarden::ledger {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

// Times are kept to within 1/32, and rounded up.
void expect_about(std::uint64_t ns, std::uint64_t wanted) {
  EXPECT_GE(ns, wanted);
  EXPECT_LE(ns, wanted + wanted / 16);
}

TEST(LongestLife, without_frees_is_zero) { EXPECT_EQ(LongestLife().ns(100 * second), 0u); }

TEST(LongestLife, is_that_of_the_allocation_that_lived_longest) {
  LongestLife longest;
  longest.freed(10 * second, 2 * second);
  longest.freed(20 * second, 5 * second);
  longest.freed(40 * second, 3 * second);
  expect_about(longest.ns(100 * second), 5 * second);
}

TEST(LongestLife, leaves_out_frees_at_the_end_of_the_run) {
  LongestLife longest;
  for (std::uint64_t time = 1; time < 99; ++time) longest.freed(time * second, second);
  longest.freed(99 * second + second / 2, 90 * second);
  expect_about(longest.ns(100 * second), second);
  // Later, when the process still runs, the free counts.
  expect_about(longest.ns(150 * second), 90 * second);
}

TEST(LongestLife, of_two_threads_is_the_longer_one) {
  LongestLife one, other;
  one.freed(50 * second, 7 * second);
  other.freed(99 * second, 80 * second);
  other.freed(20 * second, 4 * second);
  one.add(other);
  expect_about(one.ns(1000 * second), 80 * second);
  LongestLife late, early;
  late.freed(99 * second, 80 * second);
  early.freed(50 * second, 7 * second);
  late.add(early);
  expect_about(late.ns(100 * second), 7 * second);
}

TEST(LongestLife, keeps_times_of_all_magnitudes) {
  for (std::uint64_t life = 1; life < (std::uint64_t{1} << 60); life *= 3) {
    LongestLife longest;
    longest.freed(5, life);
    EXPECT_GE(longest.ns(UINT64_MAX / 2), life);
  }
}

}  // namespace
}  // namespace cuwarden::ledger
