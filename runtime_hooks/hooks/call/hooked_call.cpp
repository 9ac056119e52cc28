// The thread-local state of hooked calls.
#include "runtime_hooks/hooks/call/hooked_call.hpp"

#include "runtime_hooks/core/uncancelled.hpp"

namespace cuwarden::hooks {

constinit thread_local CallState call_state;

void forget_left_calls(const void* frame) noexcept {
  CallState& state = call_state;
  const CallMark* const driver = state.driver_mark;
  if (driver != nullptr && CallMark::is_over(driver, frame)) {
    state.driver_depth = 0;
    state.driver_mark = nullptr;
    Uncancelled::end_left();
  }
  const CallMark* const runtime = state.runtime_mark;
  if (runtime != nullptr && CallMark::is_over(runtime, frame)) {
    state.runtime_row = 0;
    state.runtime_mark = nullptr;
  }
}

}  // namespace cuwarden::hooks
