// An eight-byte lock that needs no constructor, no destructor and no libpthread: usable in zeroed
// memory and inside preloaded code. Threads that have to wait sleep in the kernel. It is neither
// recursive nor fair, and a holder must not call foreign code.
//
// A holder may never come back, if the host's signal handler left it by longjmp. So no thread waits
// for ever. If a thread has waited for more than ten seconds for one holder, the lock is given up:
// no thread can take it until that holder unlocks it after all.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/wait_budget.hpp"

namespace cuwarden {

// A lock of two 32-bit words, not recursive. If a thread has waited for more than ten seconds for
// one holder, the lock is given up: lock() fails at once, until that holder calls unlock().
class FutexLock {
 public:
  // A function that sleeps while `word` holds `value`. It returns false if it has slept for `ms`
  // milliseconds (0 to 999), and true if the sleep ended sooner.
  using Sleep = bool (*)(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                         long ms) noexcept;
  // Sleeps in the kernel (FUTEX_WAIT) while `word` holds `value`, for `ms` milliseconds (0 to 999)
  // at most. Returns false if that time has passed, and true if the sleep ended sooner or did not
  // begin. Changes errno.
  static bool sleep_in_kernel(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                              long ms) noexcept {
    const timespec limit{.tv_sec = 0, .tv_nsec = ms * 1'000'000};
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &limit, nullptr, 0) == 0 ||
           errno != ETIMEDOUT;
  }
  // The function by which threads sleep while they wait for any FutexLock of the process. Tests
  // replace it by one that returns at once, as if the time had passed.
  static inline constinit std::atomic<Sleep> sleep_while{sleep_in_kernel};

  // Takes the lock, and waits for it if necessary. Returns false, without the lock, if a thread has
  // waited for more than ten seconds for the present holder, now or earlier. Also returns false if
  // the lock is held and the calling thread's WaitBudget (a bound on its waiting for all locks) is
  // used up. Keeps errno.
  [[nodiscard]] bool lock() noexcept {
    std::uint32_t expected = free;
    return state_.compare_exchange_strong(expected, held, std::memory_order_acquire,
                                          std::memory_order_relaxed) ||
           lock_contended();
  }

  // Takes a lock that another thread may rightly keep for more than ten seconds, after which lock()
  // gives up. Waits for about ten minutes before it returns false, without the lock. A thread
  // that has a WaitBudget (a bound on its waiting for all locks) waits no longer than lock() does.
  [[nodiscard]] bool lock_for_long() noexcept {
    for (int attempt = 0; attempt < 60'000; ++attempt) {
      if (lock()) return true;
      if (WaitBudget::current() != nullptr) return false;
      const ErrnoGuard keep;
      const timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
      syscall(SYS_nanosleep, &pause, nullptr);  // glibc's nanosleep is a cancellation point.
    }
    return false;
  }

  // Takes the lock if it is free. Returns false at once if it is not.
  bool try_lock() noexcept {
    std::uint32_t expected = free;
    return state_.load(std::memory_order_relaxed) == free &&
           state_.compare_exchange_strong(expected, held, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }

  // Releases the lock, which the caller must hold, and wakes one of the threads that wait. If none
  // waits, a load and a store do it, without an atomic read-modify-write. A thread that goes to
  // sleep between that load and that store is not woken. It tries again after 64 ms at most.
  void unlock() noexcept {
    turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (state_.load(std::memory_order_relaxed) == held) {
      state_.store(free, std::memory_order_release);
    } else if (state_.exchange(free, std::memory_order_release) == contended) {
      wake_one();
    }
  }

 private:
  // States of the lock.
  static constexpr std::uint32_t free = 0;  // no thread has the lock
  static constexpr std::uint32_t held = 1;  // a thread has the lock, and no other thread waits
  // a thread has the lock, and others may wait for it
  static constexpr std::uint32_t contended = 2;
  // A thread has the lock, and another thread has waited for it in vain for ten seconds.
  static constexpr std::uint32_t given_up = 3;
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
  // Times in milliseconds. A waiting thread sleeps for first_wait_ms, and then for twice as long
  // each time, up to longest_wait_ms. The sleeps are short because time in which the process is
  // frozen counts as waited: one long sleep would use up patience_ms.
  static constexpr long first_wait_ms = 1, longest_wait_ms = 64;
  // Milliseconds of waiting after which a thread gives the lock up, if one holder keeps it for so
  // long.
  static constexpr long patience_ms = 10'000;

  // Takes a lock that lock() has found held: tries again for a moment, then sleeps until it is
  // free. Returns false, without the lock, if some thread has waited for more than ten seconds for
  // the present holder. Also returns false if the calling thread's WaitBudget is used up.
  bool lock_contended() noexcept {
    // Critical sections take some tens of nanoseconds: sleeping at once would cost more.
    for (int spin = 0; spin < 100; ++spin) {
      if (try_lock()) return true;
      __builtin_ia32_pause();
    }
    const ErrnoGuard keep;
    WaitBudget* const budget = WaitBudget::current();
    long wait_ms = first_wait_ms, waited_ms = 0;
    std::uint32_t turn = turns_.load(std::memory_order_relaxed);
    std::uint32_t seen = state_.load(std::memory_order_relaxed);
    while (seen != given_up) {
      const std::uint32_t wanted =
          waited_ms >= patience_ms && seen == contended ? given_up : contended;
      // If the lock is free, it is taken as `contended`, because other threads may be asleep.
      if (!state_.compare_exchange_weak(seen, wanted, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
        continue;
      }
      if (seen == free) return true;
      if (wanted == given_up) return false;
      // A thread without budget left stops waiting. It does not mark the lock as given up, so other
      // threads go on waiting.
      if (budget != nullptr && budget->left_ns() == 0) return false;
      const std::uint64_t begun_ns = budget != nullptr ? now_ns() : 0;
      if (!sleep_while.load(std::memory_order_relaxed)(state_, contended, wait_ms)) {
        // Number of times that the lock was released. The time that was waited counts only while
        // one and the same holder has the lock.
        const std::uint32_t now = turns_.load(std::memory_order_relaxed);
        waited_ms = now == turn ? waited_ms + wait_ms : 0;
        wait_ms = std::min(wait_ms * 2, longest_wait_ms);
        turn = now;
      }
      if (budget != nullptr) budget->spend(now_ns() - begun_ns);
      seen = state_.load(std::memory_order_relaxed);
    }
    return false;
  }

  // Wakes one thread that sleeps until the lock is free; does nothing if none sleeps. Keeps errno.
  void wake_one() noexcept {
    const ErrnoGuard keep;
    syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

  std::atomic<std::uint32_t> state_{free};  // The lock's state: free, held, contended or given_up.
  std::atomic<std::uint32_t> turns_{0};     // Number of times that the lock was released.
};

// Takes a FutexLock, and releases it at the end of the scope. Converts to false if the lock could
// not be taken. In most cases another thread has then kept it for more than ten seconds (with
// ForLong, for about ten minutes).
class [[nodiscard]] Locked {
 public:
  // Takes the lock by FutexLock::lock(), which gives up after a wait of about ten seconds.
  explicit Locked(FutexLock& lock) noexcept : lock_(lock), holds_(lock.lock()) {}
  // A tag for the constructor of Locked, which holds a lock for a scope. With the tag, it takes the
  // lock by FutexLock::lock_for_long(), which waits for ten minutes, not by lock(), which waits for
  // ten seconds.
  struct ForLong {};
  // Takes the lock by FutexLock::lock_for_long(), which gives up after a wait of about ten minutes.
  // A thread with a WaitBudget waits no longer than with lock(). The object converts to false if
  // the lock was not taken.
  Locked(FutexLock& lock, ForLong) noexcept : lock_(lock), holds_(lock.lock_for_long()) {}
  ~Locked() {
    if (holds_) lock_.unlock();
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  // True if this object holds the lock; false if the lock could not be taken.
  explicit operator bool() const noexcept { return holds_; }

 private:
  FutexLock& lock_;   // The lock that the destructor releases.
  const bool holds_;  // True if the lock was taken.
};

}  // namespace cuwarden
