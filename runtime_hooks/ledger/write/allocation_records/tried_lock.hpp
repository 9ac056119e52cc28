// A lock that threads try to take but never wait for.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"

namespace cuwarden::ledger {

// A lock that threads try to take but never wait for. It knows since when it has been held.
class TriedLock {
 public:
  // Takes the lock if it is free; returns false if it is not. `now_ns`: time since process start.
  bool try_lock(std::uint64_t now_ns) noexcept {
    if (!lock_.try_lock()) return false;
    held_since_ns_.store(now_ns, std::memory_order_relaxed);
    return true;
  }
  // Releases the lock, which the caller must hold.
  void unlock() noexcept {
    held_since_ns_.store(0, std::memory_order_relaxed);
    lock_.unlock();
  }
  // Returns true if the lock has been held for more than 10 s at `now_ns` (since process start).
  // A thread normally holds it for microseconds, so the holder has then left by a longjmp or was
  // stopped.
  bool was_left(std::uint64_t now_ns) const noexcept {
    constexpr std::uint64_t patience_ns = 10'000'000'000;
    const std::uint64_t since = held_since_ns_.load(std::memory_order_relaxed);
    return since != 0 && now_ns > since + patience_ns;
  }

 private:
  FutexLock lock_;  // the lock itself, which is never waited for
  // Time, in ns since process start, at which the lock was taken; 0: it is not held.
  std::atomic<std::uint64_t> held_since_ns_;
};

// Adds reason_recording_stopped to the ledger if the lock, which the caller has found taken, has
// been held for more than 10 s: its holder has most likely left by a longjmp without unlocking
// it. `now_ns`: present time since process start.
inline void watch(const TriedLock& lock, GrowingFile& ledger, std::uint64_t now_ns) noexcept {
  // Notices that a signal handler jumped out of the lock's holder. No thread waits for these locks,
  // so no wait would show it.
  if (lock.was_left(now_ns)) ledger.add_reason(reason_recording_stopped);
}

}  // namespace cuwarden::ledger
