// A call that makes a context: its record, and the device memory that it takes.
#pragma once

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/driver/inside_context.hpp"
#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "runtime_hooks/hooks/execution/implicit_span.hpp"

namespace cuwarden::hooks {

// Returns the number by which the ledger knows the context: its handle.
inline ContextId id_of(CUcontext context) { return {reinterpret_cast<std::uint64_t>(context)}; }
#if CUDA_VERSION >= 12040
// Returns the number by which the ledger knows the green context: its handle. A green context is
// recorded like a context.
inline ContextId id_of(CUgreenCtx green) { return {reinterpret_cast<std::uint64_t>(green)}; }
#endif

// Returns true if the current context is on `device`, so that the device's free bytes can be read.
// The driver would tell them inside any other context on the device, too. But another thread may
// end such a context at any moment, so it is not made current for a reading.
inline bool answers_for(HookedCall& call, DeviceOrdinal device) {
  return call.execution().queries.current().device == device;
}

// Records a context that a driver call makes, and the device memory that the call takes for it. If
// the device had a context before, that memory is measured by readings before and after the call.
// For a device's first context, it is estimated after the call
// (ImplicitSpan::book_first_context()). Does nothing if the program's call is not recorded.
class ContextCreation {
 public:
  // To be made right before the driver's call that makes a context on `device`. Reads the device's
  // free memory if the device already has a recorded context and the current context is on it.
  // `call`: the program's call, which must outlive this object.
  ContextCreation(HookedCall& call, DeviceOrdinal device)
      : call_(call), span_(call), device_(device) {
    if (!call.recording()) return;
    call.execution().implicit.disturb(device);
    const ErrnoGuard keep;
    further_ = call.execution().queries.live_context_on(device).value != 0;
    if (further_ && answers_for(call, device)) span_.begin(device);
  }
  // Records the context `made`, and enters the memory that it took into the ledger. Marks the
  // context's bytes as uncertain if they could not be measured and the device had another live
  // context before. Does nothing if the program's call is not recorded. To be called after the
  // driver has made the context.
  void done(ContextId made) {
    if (further_) return done_beside_others(made);
    if (!call_.recording()) return;
    call_.execution().implicit.disturb(device_);
    const ErrnoGuard keep;
    call_.execution().context_memory.made(call_.caller(), {made, device_}, true);
    if (const driver::Inside inside(call_.real(), made,
                                    call_.execution().queries.current().context);
        inside) {
      span_.book_first_context(device_, made);
    }
  }
  // Records the green context, and enters the memory that it took into the ledger. If that memory
  // could not be measured, marks the context's bytes as uncertain. To be called after the driver
  // has made the green context. Does nothing if the device's primary context is not recorded.
  void done_green(ContextId green) {
    if (!call_.recording()) return;
    if (!span_.has_begun()) call_.execution().implicit.disturb(device_);
    const ErrnoGuard keep;
    const ContextId primary = call_.execution().contexts.primary_of(device_);
    if (primary.value == 0) return;
    call_.execution().context_memory.made_green(call_.caller(), {primary, device_}, green.value);
    book_taken(green);
  }

 private:
  // Records the context `made`, and enters the memory that it took into the ledger, for a device
  // that had another context before.
  void done_beside_others(ContextId made) {
    if (!call_.recording()) return;
    if (!span_.has_begun()) call_.execution().implicit.disturb(device_);
    const ErrnoGuard keep;
    call_.execution().context_memory.made(call_.caller(), {made, device_}, false);
    book_taken(made);
  }
  // Ends the measurement, and enters the bytes that the call took into the ledger as memory of the
  // context `made`. If they could not be measured, says so in the context's record.
  void book_taken(ContextId made) {
    const bool answers = span_.has_begun() && answers_for(call_, device_);
    const auto taken = answers ? span_.taken() : std::nullopt;
    if (!taken) return call_.execution().context_memory.was_not_measured(made.value);
    // The making of a context takes memory and frees none. If the device has more free bytes than
    // before, another process has freed them.
    if (*taken > 0) span_.book({.context_bytes = *taken}, made);
  }

  // the program's call, which makes the context
  HookedCall& call_;
  // measurement of the device memory that the driver's call takes for the context
  ImplicitSpan span_;
  const DeviceOrdinal device_;  // the device on which the context is made
  bool further_ = false;        // true if the device had a context before the program's call
};

}  // namespace cuwarden::hooks
