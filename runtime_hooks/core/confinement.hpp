// Threads that the program has confined, by a seccomp filter that it installed while it was
// recorded. Such a filter may end the process for a system call that the program itself never
// makes. So a confined thread opens and writes no file, asks the kernel for nothing that can be
// done without, and leaves the report to `cuwarden run` and `cuwarden recover`.
//
// A filter that was there when recording began is another matter (a container's): the CUDA driver
// has begun behind it, opening devices and files, and so does cuwarden.
#pragma once

#include <atomic>

namespace cuwarden {

namespace detail {

// Returns true if the calling thread has a seccomp filter that was installed after recording began.
// Null until the process installs its first filter; the shim sets it then.
inline constinit std::atomic<bool (*)() noexcept> asks_confinement{nullptr};

}  // namespace detail

// True if a seccomp filter may forbid the calling thread system calls. Makes no system call.
inline bool is_confined() noexcept {
  const auto ask = detail::asks_confinement.load(std::memory_order_acquire);
  return ask != nullptr && ask();
}

}  // namespace cuwarden
