// The thread-local state of hooked calls.
#include "runtime_hooks/hooks/call/hooked_call.hpp"

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/uncancelled.hpp"

namespace cuwarden::hooks {

constinit thread_local CallState call_state;
constinit std::atomic<ProvesLeft> frames_prove_left{nullptr};

namespace {

// The frames are walked last, because that takes longest. A canary may stay whole below larger
// frames of CUDA's.
bool is_over(const CallCanary* canary, const void* frame) noexcept {
  if (CallCanary::is_over(canary, frame)) return true;
  // The canary's memory may be gone, and nothing says so.
  if (is_probing_forbidden()) return false;
  const ProvesLeft prove = frames_prove_left.load(std::memory_order_acquire);
  return prove != nullptr && prove(frame, canary->frame());
}

}  // namespace

void forget_left_calls(const void* frame) noexcept {
  CallState& state = call_state;
  const CallCanary* const driver = state.driver_canary;
  if (driver != nullptr && is_over(driver, frame)) {
    state.driver_depth = 0;
    state.driver_canary = nullptr;
    Uncancelled::end_left();
  }
  const CallCanary* const runtime = state.runtime_canary;
  if (runtime != nullptr && is_over(runtime, frame)) {
    state.runtime_row = 0;
    state.runtime_canary = nullptr;
  }
}

}  // namespace cuwarden::hooks
