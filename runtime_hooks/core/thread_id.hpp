// The kernel's numbers of threads.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden {

// Returns the kernel's id of the calling thread (gettid). Makes a system call.
inline int own_thread_id() noexcept { return static_cast<int>(syscall(SYS_gettid)); }

// True if no thread of this process has the kernel's thread id `thread` (gettid) now. False also if
// a later thread of this process has got the id of an ended one. Makes two system calls.
inline bool thread_has_ended(int thread) noexcept {
  const ErrnoGuard keep;
  // Signal 0 is not sent: the kernel only checks that the thread exists.
  return syscall(SYS_tgkill, syscall(SYS_getpid), thread, 0) != 0 && errno == ESRCH;
}

}  // namespace cuwarden
