// Preloaded into a command for which time is to fly: whoever asks twice finds that 20 seconds have
// passed.
#include <dlfcn.h>

#include <atomic>
#include <ctime>

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static const auto real =
      reinterpret_cast<int (*)(clockid_t, timespec*)>(dlsym(RTLD_NEXT, "clock_gettime"));
  static std::atomic<int> asked{0};
  const int status = real(clock, now);
  if (clock == CLOCK_MONOTONIC) now->tv_sec += 20 * asked++;
  return status;
}
