// Functions that read the monotonic clock and sleep, and an interface by which tests replace them.
// They leave errno alone, and the sleep is no cancellation point.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

#include "runtime_hooks/core/futex_wait.hpp"
#include "runtime_hooks/core/uncancelled.hpp"

namespace cuwarden {

// Returns the time of the clock `clock` in nanoseconds.
inline std::uint64_t time_ns_of(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Returns the time of CLOCK_MONOTONIC in nanoseconds.
inline std::uint64_t now_ns() noexcept { return time_ns_of(CLOCK_MONOTONIC); }
// Returns the time of CLOCK_MONOTONIC_COARSE in nanoseconds. It is CLOCK_MONOTONIC's time at the
// kernel's last tick, a few milliseconds ago at most. Costs a quarter of now_ns().
inline std::uint64_t tick_ns() noexcept { return time_ns_of(CLOCK_MONOTONIC_COARSE); }

// Converts nanoseconds to a timespec.
inline timespec timespec_of(std::uint64_t ns) noexcept {
  return {.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
          .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
}

// Sleeps for `ns` nanoseconds, or until a signal arrives. Is no cancellation point and keeps errno.
inline void sleep_ns(std::uint64_t ns) noexcept {
  const Uncancelled whole;
  const timespec time = timespec_of(ns);
  clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);  // leaves errno alone
}

// A source of time that tests can replace with one that they drive.
class Clock {
 public:
  // Returns the nanoseconds since an arbitrary but fixed moment; never goes back.
  virtual std::uint64_t now_ns() noexcept = 0;
  // Sleeps for about `ns` nanoseconds, or until a signal arrives.
  virtual void sleep_ns(std::uint64_t ns) noexcept = 0;
  // Sleeps until futex_wake_all() is called for `word`, but for about `ns` nanoseconds at most.
  // Returns at once if `word` does not hold `value`. May return at any time, so the caller must
  // check the word.
  virtual void wait_ns(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                       std::uint64_t ns) noexcept = 0;

 protected:
  ~Clock() = default;
};

// The clock that is used outside of tests: CLOCK_MONOTONIC and the kernel's sleeps.
class SystemClock final : public Clock {
 public:
  // Returns the time of CLOCK_MONOTONIC in nanoseconds.
  std::uint64_t now_ns() noexcept override { return cuwarden::now_ns(); }
  // Sleeps for `ns` nanoseconds, or until a signal arrives.
  void sleep_ns(std::uint64_t ns) noexcept override { cuwarden::sleep_ns(ns); }
  // Sleeps until futex_wake_all() is called for `word`, but for `ns` nanoseconds at most. Returns
  // at once if `word` does not hold `value`. May return too early.
  void wait_ns(const std::atomic<std::uint32_t>& word, std::uint32_t value,
               std::uint64_t ns) noexcept override {
    const timespec limit = timespec_of(ns);
    futex_wait(word, value, &limit);
  }
};
inline constinit SystemClock system_clock;  // has no state: all threads may share the object

}  // namespace cuwarden
