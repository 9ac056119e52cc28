// Holds back the calling thread's signals for the length of a scope.
#pragma once

#include "runtime_hooks/core/signal_mask.hpp"

namespace cuwarden::shim {

// Blocks all signals of the calling thread that do not come from one of its own instructions, nor
// from libc itself. They stay pending and arrive at the end of the scope. Leaves errno alone.
class [[nodiscard]] HeldSignals {
 public:
  HeldSignals() noexcept : before_(change_blocked_signals(SIG_BLOCK, held)) {}
  ~HeldSignals() { change_blocked_signals(SIG_SETMASK, before_); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  // libc cancels a thread with signal 32, and changes the user of all threads with 33.
  static constexpr SignalSet held = ~(own_signals | signal_set({32, 33}));

  SignalSet before_;
};

}  // namespace cuwarden::shim
