#include "runtime_hooks/ledger/counter_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace {

using cuwarden::ledger::CounterClock;
constexpr std::uint64_t millisecond = 1'000'000;

// How far a time is from the span in which it was asked for.
std::uint64_t error_of(CounterClock& clock) {
  const std::uint64_t before = CounterClock::read_kernel_clock();
  const std::uint64_t now = clock.now();
  const std::uint64_t after = CounterClock::read_kernel_clock();
  if (now < before) return before - now;
  return now > after ? now - after : 0;
}

TEST(CounterClockTest, ItGoesAsTheKernelsDoes) {
  CounterClock clock{};
  std::vector<std::uint64_t> errors;
  const std::uint64_t end = clock.now() + 200 * millisecond;
  while (CounterClock::read_kernel_clock() < end) errors.push_back(error_of(clock));
  std::sort(errors.begin(), errors.end());
  ASSERT_GT(errors.size(), 1000u);
  EXPECT_LT(errors[errors.size() / 2], 2'000u);
  // Where the test was stopped in between, little is said.
  EXPECT_LT(errors[errors.size() - errors.size() / 100], millisecond);
}

TEST(CounterClockTest, PausesDoNotMisleadIt) {
  CounterClock clock{};
  for (int i = 0; i < 30; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 5) + std::chrono::microseconds(300));
    for (int again = 0; again < 3; ++again) EXPECT_LT(error_of(clock), millisecond + 100'000);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // too long to measure a rate
  for (int again = 0; again < 3; ++again) EXPECT_LT(error_of(clock), millisecond + 100'000);
}

}  // namespace
