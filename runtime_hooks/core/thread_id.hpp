// The kernel's numbers of threads.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden {

inline int own_thread_id() noexcept { return static_cast<int>(syscall(SYS_gettid)); }

// True if no thread of this process has the number. A number that was given away again counts as
// that of a living thread.
inline bool thread_has_ended(int thread) noexcept {
  const ErrnoGuard keep;
  // Signal 0 is only a question.
  return syscall(SYS_tgkill, syscall(SYS_getpid), thread, 0) != 0 && errno == ESRCH;
}

}  // namespace cuwarden
