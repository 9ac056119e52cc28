// Holds back the calling thread's signals for the length of a scope.
#pragma once

#include "runtime_hooks/core/signal_mask.hpp"

namespace cuwarden::shim {

// Blocks signals of the calling thread. They stay pending and arrive at the end of the scope.
// Signals that come from one of the thread's own instructions, or from libc itself, are never
// blocked. Leaves errno alone.
class [[nodiscard]] HeldSignals {
 public:
  // The signals to block. `but_collectors`: not those by which garbage collectors stop threads, so
  // that a collector does not wait for this thread while the thread waits for a lock.
  enum class Which { all, but_collectors };
  explicit HeldSignals(Which which = Which::all) noexcept
      : before_(change_blocked_signals(SIG_BLOCK, which == Which::all ? held : held_early)) {}
  ~HeldSignals() { change_blocked_signals(SIG_SETMASK, before_); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  // libc cancels a thread with signal 32, and changes the user of all threads with 33.
  static constexpr SignalSet held = ~(own_signals | signal_set({32, 33}));
  // Collectors use these and the real-time signals, which are 34 and above.
  static constexpr SignalSet held_early =
      held & (signal_set({32}) - 1) & ~signal_set({SIGPWR, SIGXCPU, SIGUSR1, SIGUSR2, SIGURG});

  SignalSet before_;
};

}  // namespace cuwarden::shim
