// Preloaded beside driven_clock.cpp: calls of nanosleep(), as std::this_thread::sleep_for() makes
// them, let driven time pass in place of real time, as let_time_pass() does. So programs that know
// nothing of tests have even steps.
#include <dlfcn.h>
#include <time.h>

#include <cstdint>
#include <cstdlib>

extern "C" int nanosleep(const timespec* length, timespec*) {
  using Pass = void (*)(std::int64_t nanoseconds);
  static const auto pass = reinterpret_cast<Pass>(dlsym(RTLD_DEFAULT, "pass_driven_time"));
  if (pass == nullptr) std::abort();
  pass(length->tv_sec * 1'000'000'000 + length->tv_nsec);
  return 0;
}
