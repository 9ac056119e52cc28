// The signal mask of a thread, by the kernel's own call. libc's functions for it may be a
// sanitizer's, which are not ready before the program runs.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <initializer_list>

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden {

// A set of signals, in the form that the kernel takes: bit N - 1 is set if signal N is in the set.
using SignalSet = std::uint64_t;

// Returns the set of the signals with these numbers, such as SIGSEGV. Each is from 1 to 64.
constexpr SignalSet signal_set(std::initializer_list<int> signals) noexcept {
  SignalSet set = 0;
  for (const int signal : signals) set |= SignalSet{1} << (signal - 1);
  return set;
}

// Signals that a thread raises by its own instructions or calls, such as SIGSEGV. If an instruction
// raises one that its thread blocks, the kernel kills the process without calling a handler.
inline constexpr SignalSet own_signals =
    signal_set({SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS});

// Changes the calling thread's set of blocked signals, and returns the set that it had before.
// `how`: SIG_BLOCK adds `set` to the blocked signals, SIG_SETMASK blocks `set` alone.
inline SignalSet change_blocked_signals(int how, SignalSet set) noexcept {
  const ErrnoGuard keep;
  SignalSet before = 0;
  syscall(SYS_rt_sigprocmask, how, &set, &before, sizeof set);
  return before;
}

}  // namespace cuwarden
