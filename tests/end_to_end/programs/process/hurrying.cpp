// Preloaded into a command, this makes time pass quickly: between two readings of the clock, 20
// seconds pass.
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
