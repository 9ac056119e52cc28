// A clock that a test drives: time passes only where the code under test sleeps or waits for time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "runtime_hooks/core/clock.hpp"

namespace cuwarden {

class ManualClock final : public Clock {
 public:
  std::uint64_t now_ns() noexcept override { return now_; }
  void sleep_ns(std::uint64_t ns) noexcept override {
    now_ += ns;
    while_asleep();
  }
  void wait_ns(const std::atomic<std::uint32_t>& word, std::uint32_t value,
               std::uint64_t ns) noexcept override {
    if (has_time_passed_waiting())
      now_ += ns;
    else
      futex_wait(word, value);
  }
  void advance(std::uint64_t ns) noexcept { now_ += ns; }

  // Called in each sleep, after its time has passed.
  std::function<void()> while_asleep = [] {};
  // Called before each wait for a word. True: the time runs out; false: the word changes, however
  // long that takes.
  std::function<bool()> has_time_passed_waiting = [] { return false; };

 private:
  std::atomic<std::uint64_t> now_{1'000'000'000};
};

}  // namespace cuwarden
