// Lets time pass for the shim, in programs whose tests depend on the shim's clock.
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
