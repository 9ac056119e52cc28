// Tells if memory can be read, without reading it: for addresses that may be anything.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden {

// True if eight bytes can be read at the address, which may be any number. Takes about 0.1 us and
// keeps errno. The kernel is asked by a system call. The result is false for all addresses if a
// seccomp filter is known to forbid that call, or if one that the program has installed may forbid
// it: then the kernel is not asked.
//
// The kernel is asked to change the signal mask, with a number that stands for no kind of change.
// It copies the signal set from the address before it rejects the request with EINVAL. Any other
// answer counts as unreadable: EFAULT, or the answer of a filter of system calls.
inline bool is_readable(const void* address) noexcept {
  // For the kernel, an address of null means no signal set at all, which is no error.
  if (address == nullptr || is_probing_forbidden()) return false;
  const ErrnoGuard keep;
  constexpr int no_such_request = -1;
  return syscall(SYS_rt_sigprocmask, no_such_request, address, nullptr, 8) != 0 && errno == EINVAL;
}

}  // namespace cuwarden
