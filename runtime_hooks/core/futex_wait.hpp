// Sleeping until a word changes, by the kernel alone: no libpthread, and no spinning that would
// starve the thread waited for where priorities are strict.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <ctime>

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden {

// Returns when the word was found not to hold `value`, after a wake, a signal, or `limit`.
template <class Word>
void futex_wait(const std::atomic<Word>& word, Word value,
                const timespec* limit = nullptr) noexcept {
  static_assert(sizeof word == 4 && std::atomic<Word>::is_always_lock_free);
  const ErrnoGuard keep;
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, static_cast<unsigned>(value), limit, nullptr, 0);
}

template <class Word>
void futex_wake_all(std::atomic<Word>& word) noexcept {
  static_assert(sizeof word == 4 && std::atomic<Word>::is_always_lock_free);
  const ErrnoGuard keep;
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace cuwarden
