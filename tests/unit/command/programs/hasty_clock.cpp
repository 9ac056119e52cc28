// Preloaded into the command: each reading of the monotonic clock is a second later than the one
// before. So each piece of the command's work takes a second or longer, at no cost of real time.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static constinit std::atomic<time_t> seconds{1'000'000};
  if (clock != CLOCK_MONOTONIC) return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  *time = {.tv_sec = seconds.fetch_add(1), .tv_nsec = 0};
  return 0;
}
