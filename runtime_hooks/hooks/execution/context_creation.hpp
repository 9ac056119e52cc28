// A call that makes a context: its record, and the device memory that it takes.
#pragma once

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/driver/inside_context.hpp"
#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "runtime_hooks/hooks/execution/implicit_span.hpp"

namespace cuwarden::hooks {

// Returns the number by which a context is recorded.
inline ContextId id_of(CUcontext context) { return {reinterpret_cast<std::uint64_t>(context)}; }
#if CUDA_VERSION >= 12040
// A green context has a record and bytes like a context, by the number of its handle.
inline ContextId id_of(CUgreenCtx green) { return {reinterpret_cast<std::uint64_t>(green)}; }
#endif

// Returns true if the free bytes of `device` can be read here, that is, if its context is current.
// The driver answers inside any context on the device, but a context that is not current is not
// entered: another thread may end it meanwhile.
//
// The bytes that a device's first context takes cannot be told apart from other processes' memory.
// The bytes of a further context can.
inline bool answers_for(HookedCall& call, DeviceOrdinal device) {
  return call.execution().queries.current().device == device;
}

// Records a context that a call makes, and measures what it takes from the device.
class ContextCreation {
 public:
  // To be made before the driver's call, which makes a context on `device`.
  ContextCreation(HookedCall& call, DeviceOrdinal device)
      : call_(call), span_(call), device_(device) {
    if (!call.recording()) return;
    call.execution().implicit.disturb(device);
    const ErrnoGuard keep;
    further_ = call.execution().queries.live_context_on(device).value != 0;
    if (further_ && answers_for(call, device)) span_.begin(device);
  }
  // To be called after the driver has made the context.
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
  // Does done()'s work for a green context of a device that had its primary context before.
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
  // Does done()'s work for a context of a device that had a context before.
  void done_beside_others(ContextId made) {
    if (!call_.recording()) return;
    if (!span_.has_begun()) call_.execution().implicit.disturb(device_);
    const ErrnoGuard keep;
    call_.execution().context_memory.made(call_.caller(), {made, device_}, false);
    book_taken(made);
  }
  // Books what the call took, and notes in the record if that is not known.
  void book_taken(ContextId made) {
    const bool answers = span_.has_begun() && answers_for(call_, device_);
    const auto taken = answers ? span_.taken() : std::nullopt;
    if (!taken) return call_.execution().context_memory.was_not_measured(made.value);
    // A new context gives no memory back: what became free is another process's.
    if (*taken > 0) span_.book({.context_bytes = *taken}, made);
  }

  HookedCall& call_;
  ImplicitSpan span_;
  const DeviceOrdinal device_;  // the device of the new context
  bool further_ = false;        // true if the device had a context before
};

}  // namespace cuwarden::hooks
