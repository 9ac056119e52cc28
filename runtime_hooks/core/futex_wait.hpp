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

// If `word` (4 bytes) holds `value`, sleeps until futex_wake_all() of the word, a signal, or the
// time `limit` (a duration; null: no limit). A change of the word alone wakes no thread. Returns at
// once if the word holds another value. May return too early, so the caller must check the word.
// Keeps errno.
template <class Word>
void futex_wait(const std::atomic<Word>& word, Word value,
                const timespec* limit = nullptr) noexcept {
  static_assert(sizeof word == 4 && std::atomic<Word>::is_always_lock_free);
  const ErrnoGuard keep;
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, static_cast<unsigned>(value), limit, nullptr, 0);
}

// Wakes all threads of the process that sleep in futex_wait() on the word. Keeps errno.
template <class Word>
void futex_wake_all(std::atomic<Word>& word) noexcept {
  static_assert(sizeof word == 4 && std::atomic<Word>::is_always_lock_free);
  const ErrnoGuard keep;
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace cuwarden
