// Holds back the calling thread's signals for the length of a scope.
#pragma once

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/signal_mask.hpp"

namespace cuwarden::shim {

// Signals that HeldSignals blocks unless it is given others. Left out are signals that one of the
// thread's own instructions raises, and two of libc: 32 cancels a thread, and 33 changes the user
// of all threads.
inline constexpr SignalSet signals_to_hold = ~(own_signals | signal_set({32, 33}));

// Returns the signals for which the program has a handler now, without those that must not be
// blocked (not in signals_to_hold). Leaves errno alone.
inline SignalSet signals_with_handlers() noexcept {
  // The kernel's form of struct sigaction.
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    SignalSet mask;
  } action{};
  const ErrnoGuard keep;
  SignalSet with_handlers = 0;
  for (int signal = 1; signal <= 64; ++signal)
    if ((signals_to_hold & signal_set({signal})) != 0 &&
        syscall(SYS_rt_sigaction, signal, nullptr, &action, sizeof action.mask) == 0 &&
        action.handler != SIG_DFL && action.handler != SIG_IGN)
      with_handlers |= signal_set({signal});
  return with_handlers;
}

// Blocks signals of the calling thread while the object exists; they stay pending until the
// destructor restores the thread's signal mask. Leaves errno alone.
class [[nodiscard]] HeldSignals {
 public:
  // `held`: the signals to block.
  explicit HeldSignals(SignalSet held = signals_to_hold) noexcept
      : before_(change_blocked_signals(SIG_BLOCK, held)) {}
  ~HeldSignals() { change_blocked_signals(SIG_SETMASK, before_); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  SignalSet before_;  // signals that the thread blocked before
};

}  // namespace cuwarden::shim
