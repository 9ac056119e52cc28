// Lets time pass for the shim, for programs of which a test is about what happens later.
#pragma once

#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <thread>

// Lets `milliseconds` pass. If driven_clock.cpp is preloaded, its clock goes on at once: the shim
// then sees exactly that time, whatever else the machine does. Otherwise sleeps for that long.
inline void let_time_pass(std::int64_t milliseconds) {
  using Pass = void (*)(std::int64_t nanoseconds);
  if (void* const found = dlsym(RTLD_DEFAULT, "pass_driven_time"))
    reinterpret_cast<Pass>(found)(milliseconds * 1'000'000);
  else
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}
