// Calls of driver functions that cuwarden does not know: those that have a row neither in hooks.def
// nor in known_functions.def. Such a function may have a device access memory without passing the
// submission gate, so that memory must not be moved any more.
#pragma once

#include <atomic>

#include "runtime_hooks/driver/gate_scope.hpp"

namespace cuwarden::driver {

// Name of a driver function that cuwarden does not know, and that the program has called or may
// call unnoticed; null if there is none. It never changes again once set. The text lives as long as
// the process.
inline constinit std::atomic<const char*> unknown_call{nullptr};

// Notes that the program calls, or may call, a driver function that cuwarden does not know. From
// then on, cuwarden moves no memory. `name`: the function's name, which must live as long as the
// process. If a thread is moving memory (it has closed the submission gate), waits until it is
// done.
inline void note_unknown_call(const char* name) noexcept {
  const char* none = nullptr;
  unknown_call.compare_exchange_strong(none, name);
  const GateScope until_the_gate_is_open;
}

}  // namespace cuwarden::driver
