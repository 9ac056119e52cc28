// The monotonic clock, and a sleep that is no cancellation point. Both leave errno alone.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden {

// Returns the time of CLOCK_MONOTONIC in nanoseconds.
inline std::uint64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Sleeps for `ns` nanoseconds, or until a signal arrives.
inline void sleep_ns(std::uint64_t ns) noexcept {
  const ErrnoGuard keep;
  const timespec time{.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
                      .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr);
}

}  // namespace cuwarden
