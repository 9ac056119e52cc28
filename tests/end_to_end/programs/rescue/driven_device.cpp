// Preloaded beside driven_clock.cpp: kernels of the simulated GPU last for driven time. They run on
// until the shim sleeps, the driver itself waits for them, or the program calls let_time_pass().
// So a program always comes in time to make a call while a kernel runs.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "../replaced_imports.hpp"

namespace {

void* of_driven_clock(const char* name) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) std::abort();
  return found;
}

int sleep(const timespec* length, timespec*) {
  using Pass = void (*)(std::int64_t nanoseconds);
  static const auto pass = reinterpret_cast<Pass>(of_driven_clock("pass_driven_time"));
  pass(length->tv_sec * 1'000'000'000 + length->tv_nsec);
  return 0;
}

[[gnu::constructor]] void take_over() {
  replace_import_of_driver("clock_gettime", of_driven_clock("read_driven_clock"));
  replace_import_of_driver("nanosleep", reinterpret_cast<void*>(sleep));
}

}  // namespace
