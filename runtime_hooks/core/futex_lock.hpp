// A four-byte lock that needs no constructor, no destructor and no libpthread: usable in zeroed
// memory and inside preloaded code. Threads that have to wait sleep in the kernel. It is neither
// recursive nor fair, and a holder must not call foreign code.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace cuwarden {

class FutexLock {
 public:
  void lock() noexcept {
    std::uint32_t expected = free;
    if (state_.compare_exchange_strong(expected, held, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
      return;
    }
    lock_contended();
  }

  bool try_lock() noexcept {
    std::uint32_t expected = free;
    return state_.load(std::memory_order_relaxed) == free &&
           state_.compare_exchange_strong(expected, held, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }

  void unlock() noexcept {
    if (state_.exchange(free, std::memory_order_release) == contended) wake_one();
  }

 private:
  static constexpr std::uint32_t free = 0, held = 1, contended = 2;
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

  void lock_contended() noexcept {
    // Critical sections here are some tens of nanoseconds: sleeping at once would cost more.
    for (int spin = 0; spin < 100; ++spin) {
      if (try_lock()) return;
      __builtin_ia32_pause();
    }
    const int saved_errno = errno;
    while (state_.exchange(contended, std::memory_order_acquire) != free) {
      syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, contended, nullptr, nullptr, 0);
    }
    errno = saved_errno;
  }

  void wake_one() noexcept {
    const int saved_errno = errno;
    syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    errno = saved_errno;
  }

  std::atomic<std::uint32_t> state_{free};
};

// Holds a lock for the length of a scope.
class [[nodiscard]] Locked {
 public:
  explicit Locked(FutexLock& lock) noexcept : lock_(lock) { lock_.lock(); }
  ~Locked() { lock_.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  FutexLock& lock_;
};

}  // namespace cuwarden
