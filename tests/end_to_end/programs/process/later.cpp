// Preloaded into a command that is to believe that five minutes have passed: the times of a file
// cannot be set back all together.
#include <dlfcn.h>

#include <ctime>

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static const auto real =
      reinterpret_cast<int (*)(clockid_t, timespec*)>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int status = real(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += 300;
  return status;
}
