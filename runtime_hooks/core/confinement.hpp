// Threads that the program has confined, by a seccomp filter that it installed on itself. Such a
// filter may end the process for a system call that the program itself never makes. So a confined
// thread opens and writes no file, asks the kernel for nothing that can be done without, and leaves
// the report to `cuwarden run` and `cuwarden recover`. It asks the driver for nothing but what the
// program asks for: its refused requests are repeated once and then refused, and the pool serves
// it nothing.
//
// A filter that the process began with is another matter (a container's): the CUDA driver has begun
// behind it, opening devices and files, and so does cuwarden.
#pragma once

#include <atomic>

namespace cuwarden {

namespace detail {

// Returns true if the calling thread has a seccomp filter that was installed after recording began.
// Null until the process installs its first filter; the shim sets it then.
inline constinit std::atomic<bool (*)() noexcept> asks_confinement{nullptr};
// True where all filters of confined threads allow is_readable() (readable.hpp).
inline constinit std::atomic<bool> confined_may_probe{false};
// True where a filter that the process began with makes is_readable() say no of all memory.
inline constinit std::atomic<bool> probing_fails{false};

}  // namespace detail

// True if a seccomp filter may forbid the calling thread system calls. Makes no system call.
inline bool is_confined() noexcept {
  const auto ask = detail::asks_confinement.load(std::memory_order_acquire);
  return ask != nullptr && ask();
}

// True where it is of no use to ask if memory can be read, and in a confined thread that must not.
inline bool is_probing_forbidden() noexcept {
  if (detail::probing_fails.load(std::memory_order_relaxed)) return true;
  return is_confined() && !detail::confined_may_probe.load(std::memory_order_relaxed);
}

}  // namespace cuwarden
