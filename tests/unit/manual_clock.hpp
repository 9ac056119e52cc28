// A clock that a test drives: time passes only where the code under test sleeps or waits for time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "runtime_hooks/core/clock.hpp"

namespace cuwarden {

// A clock that a test drives: time passes only where the code under test sleeps or waits for time,
// or where the test calls advance().
class ManualClock final : public Clock {
 public:
  // Returns the time in nanoseconds: one second, and the time that the test has let pass.
  std::uint64_t now_ns() noexcept override { return now_; }
  // Lets `ns` nanoseconds pass at once, and calls while_asleep().
  void sleep_ns(std::uint64_t ns) noexcept override {
    now_ += ns;
    while_asleep();
  }
  // If has_time_passed_waiting() returns true, lets `ns` nanoseconds pass at once. Otherwise waits
  // until `word` no longer has `value`, without a limit.
  void wait_ns(const std::atomic<std::uint32_t>& word, std::uint32_t value,
               std::uint64_t ns) noexcept override {
    if (has_time_passed_waiting())
      now_ += ns;
    else
      futex_wait(word, value);
  }
  // Lets `ns` nanoseconds pass.
  void advance(std::uint64_t ns) noexcept { now_ += ns; }

  // Called in each sleep_ns(), after its time has passed; does nothing unless a test sets it.
  std::function<void()> while_asleep = [] {};
  // Called before each wait for a word. Returns true if the wait is to run out of time at once;
  // false if it is to last until the word changes.
  std::function<bool()> has_time_passed_waiting = [] { return false; };

 private:
  // The present time, in nanoseconds.
  std::atomic<std::uint64_t> now_{1'000'000'000};
};

}  // namespace cuwarden
