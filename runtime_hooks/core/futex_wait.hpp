// Sleeps until a word changes, with the kernel alone. No libpthread is needed, and nothing spins:
// under strict priorities, spinning would starve the thread that is waited for.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <ctime>

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden {

// Sleeps while the word holds `value`. Returns after a wake, a signal, or `limit` (null: no limit),
// and at once if the word holds another value.
template <class Word>
void futex_wait(const std::atomic<Word>& word, Word value,
                const timespec* limit = nullptr) noexcept {
  static_assert(sizeof word == 4 && std::atomic<Word>::is_always_lock_free);
  const ErrnoGuard keep;
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, static_cast<unsigned>(value), limit, nullptr, 0);
}

// Wakes all threads that sleep on the word.
template <class Word>
void futex_wake_all(std::atomic<Word>& word) noexcept {
  static_assert(sizeof word == 4 && std::atomic<Word>::is_always_lock_free);
  const ErrnoGuard keep;
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace cuwarden
