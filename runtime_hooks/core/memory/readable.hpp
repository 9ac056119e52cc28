// Tells if memory can be read, without reading it: for addresses that may be anything.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden {

// True if eight bytes can be read at the address, which may be any number. Takes about 0.1 us and
// keeps errno. Asks Linux by the system call rt_sigprocmask. Where a seccomp filter may forbid this
// call, Linux is not asked, and the result is false for all addresses.
//
// The call gets an invalid first argument (`how`), so it changes nothing. Linux copies the signal
// set from the address before it rejects the argument with EINVAL. Any other answer counts as
// unreadable: EFAULT, or the answer of a filter of system calls.
inline bool is_readable(const void* address) noexcept {
  // For the kernel, an address of null means no signal set at all, which is no error.
  if (address == nullptr || is_probing_forbidden()) return false;
  const ErrnoGuard keep;
  constexpr int no_such_request = -1;
  return syscall(SYS_rt_sigprocmask, no_such_request, address, nullptr, 8) != 0 && errno == EINVAL;
}

}  // namespace cuwarden
