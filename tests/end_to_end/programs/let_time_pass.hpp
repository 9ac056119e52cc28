// Lets time pass for the shim, and reads the shim's clock, in programs whose tests depend on the
// shim's clock.
#pragma once

#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <thread>

// Lets `milliseconds` pass. If driven_clock.cpp is preloaded, moves its clock forward at once: by
// the shim's clock exactly that time has passed. Otherwise sleeps for that long.
inline void let_time_pass(std::int64_t milliseconds) {
  using Pass = void (*)(std::int64_t nanoseconds);
  if (void* const found = dlsym(RTLD_DEFAULT, "pass_driven_time"))
    reinterpret_cast<Pass>(found)(milliseconds * 1'000'000);
  else
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

// From now on, each reading of the shim's clock takes `nanoseconds` by that clock, if
// driven_clock.cpp is preloaded. Otherwise does nothing.
inline void let_readings_take(std::int64_t nanoseconds) {
  using Set = void (*)(std::int64_t nanoseconds);
  if (void* const found = dlsym(RTLD_DEFAULT, "set_driven_reading"))
    reinterpret_cast<Set>(found)(nanoseconds);
}

// Returns the present time by the shim's clock, in nanoseconds since an arbitrary moment: that of
// driven_clock.cpp if it is preloaded, otherwise that of std::chrono::steady_clock.
inline std::int64_t present_time_ns() {
  using Read = std::int64_t (*)();
  if (void* const found = dlsym(RTLD_DEFAULT, "driven_time_ns"))
    return reinterpret_cast<Read>(found)();
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}
