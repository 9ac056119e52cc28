// CLOCK_MONOTONIC for one thread, in a third of the time: the kernel is asked once in a
// millisecond, and in between the processor's time-stamp counter tells how much has passed. The
// kernel's own reading waits until all that came before has been done; this one does not.
//
// Whatever the counter does (its rate changes, processors disagree), a time is never off by more
// than that millisecond. It may fall behind an earlier one by some nanoseconds.
#pragma once

#include <x86intrin.h>

#include <atomic>
#include <cstdint>

namespace cuwarden::ledger {

// Usable in zeroed memory. By one thread and the handlers of its signals.
class CounterClock {
 public:
  // Nanoseconds.
  std::uint64_t now() noexcept {
    const std::uint64_t elapsed = __rdtsc() - count_.load(relaxed);
    if (elapsed >= window_.load(relaxed)) return synchronise();
    return ns_.load(relaxed) + (elapsed * rate_.load(relaxed) >> 32);
  }

  static std::uint64_t read_kernel_clock() noexcept;

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;
  std::uint64_t synchronise() noexcept;

  // At the same moment.
  std::atomic<std::uint64_t> count_, ns_;
  std::atomic<std::uint64_t> rate_;    // nanoseconds in 2^32 counts; 0: not measured yet
  std::atomic<std::uint64_t> window_;  // counts for which these are good
  std::atomic<bool> synchronising_;
};

}  // namespace cuwarden::ledger
