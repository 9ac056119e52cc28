// The ledger's times: nanoseconds since the recorded process began.
#pragma once

#include <cstdint>
#include <ctime>

namespace cuwarden::ledger {

// A clock that counts nanoseconds from the start of the recorded process.
class ProcessTime {
 public:
  // Sets the beginning of the process to `start_ns`, a time of CLOCK_MONOTONIC. Must be called
  // before other functions.
  void set_start(std::uint64_t start_ns) noexcept { start_ns_ = start_ns; }

  // Returns the nanoseconds since the process began.
  std::uint64_t now_ns() const noexcept { return read(CLOCK_MONOTONIC) - start_ns_; }
  // Returns the nanoseconds from the beginning of the process to the kernel's last tick, which is
  // some milliseconds ago at most. Costs a quarter of now_ns().
  std::uint64_t recently_ns() const noexcept { return since_start(read(CLOCK_MONOTONIC_COARSE)); }
  // Returns the time of CLOCK_MONOTONIC or its coarse form in nanoseconds since the process began.
  std::uint64_t since_start(std::uint64_t monotonic_ns) const noexcept {
    return monotonic_ns > start_ns_ ? monotonic_ns - start_ns_ : 0;
  }

 private:
  // Returns the time of the clock (CLOCK_MONOTONIC or its coarse form) in nanoseconds.
  static std::uint64_t read(clockid_t clock) noexcept {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
  }

  std::uint64_t start_ns_ = 0;  // start of the process by CLOCK_MONOTONIC, in nanoseconds
};

}  // namespace cuwarden::ledger
