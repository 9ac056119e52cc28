// The ledger's times: nanoseconds since the recorded process began.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/clock.hpp"

namespace cuwarden::ledger {

// A clock that counts nanoseconds from the start of the recorded process.
class ProcessTime {
 public:
  // Sets the beginning of the process to `start_ns`, a time of CLOCK_MONOTONIC. Must be called
  // before other functions.
  void set_start(std::uint64_t start_ns) noexcept { start_ns_ = start_ns; }

  // Returns the nanoseconds since the process began.
  std::uint64_t now_ns() const noexcept { return cuwarden::now_ns() - start_ns_; }
  // Returns the nanoseconds from the beginning of the process to the kernel's last tick
  // (tick_ns()).
  std::uint64_t recently_ns() const noexcept { return since_start(tick_ns()); }
  // Returns a time of now_ns() or tick_ns() as nanoseconds since the process began.
  std::uint64_t since_start(std::uint64_t monotonic_ns) const noexcept {
    return monotonic_ns > start_ns_ ? monotonic_ns - start_ns_ : 0;
  }

 private:
  std::uint64_t start_ns_ = 0;  // start of the process by CLOCK_MONOTONIC, in nanoseconds
};

}  // namespace cuwarden::ledger
