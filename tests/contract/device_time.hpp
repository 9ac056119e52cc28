// The time of the simulated device, which a test drives: it passes only while the driver sleeps, or
// where the test says so. So a kernel lasts until a call waits for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

#include "tests/comes_about.hpp"
#include "tests/end_to_end/programs/replaced_imports.hpp"

namespace cuwarden::contract {

// The simulated driver's clock, in this process.
class DeviceTime {
 public:
  // Makes the driver's time the test's from now on. The process must have loaded the simulated
  // driver. Further calls have no effect.
  static void take_over() {
    if (now_ns_ != 0) return;
    now_ns_ = second_ns;
    replace_import_of_driver("clock_gettime", reinterpret_cast<void*>(read));
    replace_import_of_driver("nanosleep", reinterpret_cast<void*>(sleep));
  }
  // Lets `milliseconds` pass.
  static void pass(std::int64_t milliseconds) { now_ns_ += milliseconds * 1'000'000; }

  // Makes the driver's sleeps in the calling thread last until other threads have let their time
  // pass. Without this call, each sleep lets its own time pass at once.
  static void sleep_for_others() { sleeps_for_others_ = true; }
  // Returns the number of threads that called sleep_for_others() and sleep now.
  static int sleepers() { return sleepers_; }

 private:
  static int read(clockid_t, timespec* time) {
    const std::int64_t now = now_ns_;
    *time = {.tv_sec = now / second_ns, .tv_nsec = now % second_ns};
    return 0;
  }
  static int sleep(const timespec* length, timespec*) {
    const std::int64_t length_ns = length->tv_sec * second_ns + length->tv_nsec;
    if (!sleeps_for_others_) {
      now_ns_ += length_ns;
      return 0;
    }
    const std::int64_t end_ns = now_ns_ + length_ns;
    ++sleepers_;
    wait_until("the time for which the driver sleeps", [end_ns] { return now_ns_ >= end_ns; });
    --sleepers_;
    return 0;
  }

  static constexpr std::int64_t second_ns = 1'000'000'000;

  // The present time in nanoseconds; 0 before take_over().
  static inline std::atomic<std::int64_t> now_ns_{0};
  // Number of threads inside sleep() that wait for others.
  static inline std::atomic<int> sleepers_{0};
  // True if the thread's sleeps last until other threads have let the time pass.
  static inline thread_local bool sleeps_for_others_ = false;
};

}  // namespace cuwarden::contract
