// The time for which a thread has been on a processor. Other work on the machine does not count.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>

namespace cuwarden {

// Returns the nanoseconds for which the calling thread has computed since it began.
inline std::int64_t computed_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// Calls work() `rounds` times. Returns the nanoseconds that the quickest call has computed, which
// interrupts and other processes have slowed down least. Once a call has computed for less than
// `enough_ns`, no further call is made.
//
// A test compares two such times of its own process, for little and for much work. Both grow alike
// on a slow or busy machine, so their ratio tells if the cost is linear.
template <class Work>
std::int64_t least_computed_ns(int rounds, const Work& work, std::int64_t enough_ns = 0) {
  std::int64_t least_ns = INT64_MAX;
  for (int i = 0; i < rounds && least_ns >= enough_ns; ++i) {
    const std::int64_t begin_ns = computed_ns();
    work();
    least_ns = std::min(least_ns, computed_ns() - begin_ns);
  }
  return least_ns;
}

}  // namespace cuwarden
