#include "runtime_hooks/ledger/format/longest_life.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace cuwarden::ledger {
namespace {

constexpr std::uint64_t a_second = 1'000'000'000;

// Times are kept to within 1/32, and rounded up.
void expect_about(std::uint64_t ns, std::uint64_t wanted) {
  EXPECT_GE(ns, wanted);
  EXPECT_LE(ns, wanted + wanted / 16);
}

TEST(LongestLife, without_frees_is_zero) { EXPECT_EQ(LongestLife().ns(100 * a_second), 0u); }

TEST(LongestLife, is_that_of_the_allocation_that_lived_longest) {
  LongestLife longest;
  longest.freed(10 * a_second, 2 * a_second);
  longest.freed(20 * a_second, 5 * a_second);
  longest.freed(40 * a_second, 3 * a_second);
  expect_about(longest.ns(100 * a_second), 5 * a_second);
}

TEST(LongestLife, leaves_out_frees_at_the_end_of_the_run) {
  LongestLife longest;
  for (std::uint64_t time = 1; time < 99; ++time) longest.freed(time * a_second, a_second);
  longest.freed(99 * a_second + a_second / 2, 90 * a_second);
  expect_about(longest.ns(100 * a_second), a_second);
  // Later, when the process still runs, the free counts.
  expect_about(longest.ns(150 * a_second), 90 * a_second);
}

TEST(LongestLife, the_longer_one_of_two_threads_counts) {
  LongestLife one, other;
  one.freed(50 * a_second, 7 * a_second);
  other.freed(99 * a_second, 80 * a_second);
  other.freed(20 * a_second, 4 * a_second);
  one.add(other);
  expect_about(one.ns(1000 * a_second), 80 * a_second);
  LongestLife late, early;
  late.freed(99 * a_second, 80 * a_second);
  early.freed(50 * a_second, 7 * a_second);
  late.add(early);
  expect_about(late.ns(100 * a_second), 7 * a_second);
}

TEST(LongestLife, keeps_times_of_all_magnitudes) {
  for (std::uint64_t life = 1; life < (std::uint64_t{1} << 60); life *= 3) {
    LongestLife longest;
    longest.freed(5, life);
    EXPECT_GE(longest.ns(UINT64_MAX / 2), life);
  }
}

TEST(LongestLife, in_a_damaged_ledger_is_some_time_of_64_bits) {
  for (const std::uint64_t word : {UINT64_MAX, UINT64_MAX - 0xffff, std::uint64_t{2048} << 32,
                                   std::uint64_t{2049} << 16, std::uint64_t{4094} << 32})
    EXPECT_GT(LongestLife(word).ns(UINT64_MAX), std::uint64_t{1} << 62);
}

}  // namespace
}  // namespace cuwarden::ledger
