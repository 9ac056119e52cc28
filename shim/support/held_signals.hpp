// Holds back the calling thread's signals for the length of a scope.
#pragma once

#include "runtime_hooks/core/signal_mask.hpp"

namespace cuwarden::shim {

// Blocks signals of the calling thread; they stay pending until the destructor restores the
// thread's earlier mask. Signals that the thread's own instructions or calls raise (such as SIGSEGV
// and SIGABRT) are never blocked, nor are libc's own signals (32 and 33). Leaves errno alone.
class [[nodiscard]] HeldSignals {
 public:
  // The signals to block. all: all that the class may block. but_collectors: these, less the
  // signals by which garbage collectors stop threads (SIGPWR, SIGXCPU, SIGUSR1, SIGUSR2, SIGURG,
  // and 34 and above). So a collector does not wait for this thread while the thread waits for a
  // lock.
  enum class Which { all, but_collectors };
  explicit HeldSignals(Which which = Which::all) noexcept
      : before_(change_blocked_signals(SIG_BLOCK, which == Which::all ? held : held_early)) {}
  ~HeldSignals() { change_blocked_signals(SIG_SETMASK, before_); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  // Signals that are blocked for Which::all: all but those that an instruction or call of the
  // thread raises (own_signals), and libc's own. By signal 32 libc cancels a thread; by 33 it
  // changes the user of all threads.
  static constexpr SignalSet held = ~(own_signals | signal_set({32, 33}));
  // Signals that are blocked for Which::but_collectors. Garbage collectors use the signals left out
  // here, among them the real-time signals, which are 34 and above.
  static constexpr SignalSet held_early =
      held & (signal_set({32}) - 1) & ~signal_set({SIGPWR, SIGXCPU, SIGUSR1, SIGUSR2, SIGURG});

  // The thread's blocked signals from before the scope, which the destructor restores.
  SignalSet before_;
};

}  // namespace cuwarden::shim
