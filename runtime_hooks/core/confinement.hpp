// Threads that the program has confined, by a seccomp filter that it installed on itself. Such a
// filter may end the process for a system call that the program itself never makes. So a confined
// thread opens and writes no file, and makes no system call that can be left out. It leaves the
// report to `cuwarden run` and `cuwarden recover`. It makes only those driver calls that the
// program makes: its refused requests are repeated once and then refused, and the pool serves it
// nothing.
//
// A filter that the process began with (a container's) confines no thread in this sense: the CUDA
// driver opens devices and files under that filter, and so does cuwarden.
#pragma once

#include <atomic>

namespace cuwarden {

namespace detail {

// A function that returns true if the calling thread is confined; is_confined() calls it. The shim
// sets this pointer before the program installs a seccomp filter on itself that may forbid a system
// call of cuwarden's. It also does so when it finds a filter that was installed unnoticed. Null
// before that, after an installation that failed, and in a new forked child.
inline constinit std::atomic<bool (*)() noexcept> asks_confinement{nullptr};
// True if confined threads may call is_readable(), which asks the kernel by a system call if memory
// can be read: all seccomp filters of the program are known to allow that system call.
inline constinit std::atomic<bool> confined_may_probe{false};
// True if is_readable() would return false even for memory that can be read. The function asks the
// kernel by a system call, and a seccomp filter that the process began with (a container's) makes
// that call fail.
inline constinit std::atomic<bool> probing_fails{false};

}  // namespace detail

// True if the calling thread is confined: a seccomp filter that the program has installed on itself
// may forbid the thread a system call of cuwarden's. True also if cuwarden does not know if the
// thread has such a filter, and must not ask the kernel. Makes at most one system call,
// prctl(PR_GET_SECCOMP), and only if the call is known to be harmless. Keeps errno.
inline bool is_confined() noexcept {
  const auto ask = detail::asks_confinement.load(std::memory_order_acquire);
  return ask != nullptr && ask();
}

// True if is_readable() must not ask the kernel if memory can be read. A seccomp filter of the
// calling thread may forbid the system call. Or a filter that the process began with makes the
// kernel answer "no" for all memory.
inline bool is_probing_forbidden() noexcept {
  if (detail::probing_fails.load(std::memory_order_relaxed)) return true;
  return is_confined() && !detail::confined_may_probe.load(std::memory_order_relaxed);
}

}  // namespace cuwarden
