// The ledger's times: nanoseconds since the recorded process began.
#pragma once

#include <algorithm>
#include <atomic>
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
  // Returns the time of the kernel's last tick (tick_ns()), in nanoseconds since the process began.
  // If boundary() has returned a later time, returns that time instead.
  std::uint64_t recently_ns() const noexcept {
    return std::max(since_start(tick_ns()), boundary_ns_.load(std::memory_order_relaxed));
  }
  // Returns the present time in nanoseconds since the process began, and makes it a boundary for
  // recently_ns(). Results of recently_ns() from before this call are not above it, later ones are
  // not below it. So the times of two events tell if the boundary lies between them, even within
  // one tick.
  std::uint64_t boundary() const noexcept {
    const std::uint64_t now = now_ns();
    std::uint64_t last = boundary_ns_.load(std::memory_order_relaxed);
    while (last < now && !boundary_ns_.compare_exchange_weak(last, now)) {
    }
    return std::max(now, last);
  }
  // Converts `monotonic_ns`, a time of CLOCK_MONOTONIC such as a result of tick_ns(), to
  // nanoseconds since the process began; 0 for a time before that.
  std::uint64_t since_start(std::uint64_t monotonic_ns) const noexcept {
    return monotonic_ns > start_ns_ ? monotonic_ns - start_ns_ : 0;
  }

 private:
  std::uint64_t start_ns_ = 0;  // start of the process by CLOCK_MONOTONIC, in nanoseconds
  // Latest time that boundary() has returned, in ns since the process began; 0: none. Results of
  // recently_ns() are not below it.
  mutable std::atomic<std::uint64_t> boundary_ns_{0};
};

}  // namespace cuwarden::ledger
