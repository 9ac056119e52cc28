// The time for which a thread has been on a processor. Other work on the machine does not count.
#pragma once

#include <cstdint>
#include <ctime>

namespace cuwarden {

// Returns the nanoseconds for which the calling thread has computed since it began.
inline std::int64_t computed_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

}  // namespace cuwarden
