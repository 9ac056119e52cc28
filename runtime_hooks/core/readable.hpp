// Whether memory can be read, without reading it: for addresses that may be anything.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden {

// Whether eight bytes can be read. The kernel copies a signal set from there before it finds that
// the request makes no sense: EFAULT where it cannot. Any other answer comes from a filter of
// system calls, and says nothing. No descriptor is needed and nothing is changed; about 0.1 us.
inline bool is_readable(const void* address) noexcept {
  if (address == nullptr) return false;  // to the kernel: no set at all, which is no error
  const ErrnoGuard keep;
  constexpr int no_such_request = -1;
  return syscall(SYS_rt_sigprocmask, no_such_request, address, nullptr, 8) != 0 && errno == EINVAL;
}

}  // namespace cuwarden
