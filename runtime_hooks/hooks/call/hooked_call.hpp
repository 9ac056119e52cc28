// One call of the program into CUDA, as seen by the hook that understands it.
//
// A call counts once, under its outermost API: while a thread is inside a hooked driver function
// (or inside the shim's own work), further driver calls of that thread go straight through; a
// hooked runtime function lends its name to the driver calls below it.
#pragma once

#include <cstdint>

#include "runtime_hooks/driver/hook_list.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/hooks/call/call_mark.hpp"
#include "runtime_hooks/hooks/call/session.hpp"
#include "runtime_hooks/hooks/call/session_parts.hpp"
#include "runtime_hooks/ledger/storage/thread_shards.hpp"
#include "runtime_hooks/ledger/write/allocation_records/record_fields.hpp"
#include "runtime_hooks/rescue/reclaimers.hpp"

namespace cuwarden::hooks {

// Says if the thread is confined by a seccomp filter that was installed after recording began.
enum class Confinement : std::uint32_t { unknown, none, confined };

// The state of one thread. Initial-exec TLS is taken out of every thread's stack: keep this tiny.
struct CallState {
  std::uint16_t driver_depth = 0;
  std::uint16_t runtime_row = 0;  // driver::Row + 1 of the outermost runtime call; 0: none
  Confinement confinement = Confinement::unknown;
  // Marks of the outermost calls. A longjmp that leaves these calls does not reset this state; the
  // marks show it. Null outside of calls, and during cuwarden's own work.
  const CallMark* driver_mark = nullptr;
  const CallMark* runtime_mark = nullptr;
};
static_assert(sizeof(CallState) <= 24);
extern constinit thread_local CallState call_state
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Resets the state of the calling thread if it left its hooked calls without returning from them.
// `frame` is the frame of the hooked function that asks.
void forget_left_calls(const void* frame) noexcept;

// Call forget_left_calls() if the thread seems to be inside a hooked call. To be used before
// anything is decided by the thread's state.
inline void forget_left_driver_call(const void* frame) noexcept {
  if (call_state.driver_depth != 0 && call_state.driver_mark != nullptr) forget_left_calls(frame);
}
inline void forget_left_runtime_call(const void* frame) noexcept {
  if (call_state.runtime_row != 0) forget_left_calls(frame);
}

class HookedCall {
 public:
  // `session` is null if nothing is recorded; the call then only goes through.
  // Always inlined, so that __builtin_frame_address(0) is the hooked function's frame.
  [[gnu::always_inline]] HookedCall(const driver::RealDriver& real, Session* session,
                                    driver::Row row)
      : real_(real), session_(nullptr), row_(row), mark_(__builtin_frame_address(0)) {
    forget_left_driver_call(__builtin_frame_address(0));
    depth_before_ = call_state.driver_depth;
    call_state.driver_depth = static_cast<std::uint16_t>(depth_before_ + 1);
    if (depth_before_ != 0) return;
    call_state.driver_mark = &mark_;
    // A runtime call under way called this driver call, so its mark lies at a higher address. A
    // mark at a lower address belongs to a call that was left.
    if (call_state.runtime_row != 0 && call_state.runtime_mark <= &mark_)
      forget_left_calls(__builtin_frame_address(0));
    session_ = session;
    if (session_ == nullptr) return;
    session_->ledger.thread_shards.count_call(driver::hook_id(row));
    session_->call_passes();
  }
  ~HookedCall() {
    call_state.driver_depth = depth_before_;
    if (depth_before_ == 0) call_state.driver_mark = nullptr;
    if (session_ != nullptr) session_->call_passes();
  }
  HookedCall(const HookedCall&) = delete;
  HookedCall& operator=(const HookedCall&) = delete;

  const driver::RealDriver& real() const { return real_; }

  // True if this call is to be recorded. Only then may the parts be asked for.
  bool recording() const { return session_ != nullptr; }
  MemoryParts memory() const { return MemoryParts(*session_); }
  GraphParts graphs() const { return GraphParts(*session_); }
  ExecutionParts execution() const { return ExecutionParts(*session_); }

  // Returns the call for the records: its name for the report, and its frame.
  tracking::Caller caller() const {
    return {call_state.runtime_row != 0
                ? HookId{static_cast<std::uint16_t>(call_state.runtime_row - 1)}
                : driver::hook_id(row_),
            mark_.frame()};
  }

  // To be called after the real allocating call. Records the allocation if the call succeeded;
  // counts a refusal if memory was lacking. Fills in the record's call site and time.
  void allocated(CUresult result, const tracking::Allocation& allocation) {
    if (!recording()) return;
    if (result == CUDA_SUCCESS) {
      const DeviceOrdinal device = session_->allocations.allocated(caller(), allocation);
      if (allocation.address != 0 && !was_refused_)
        session_->refusals.served(caller(), allocation, device);
    } else if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      // The call reached the allocation's device, which need not be the current one.
      if (!allocation.host) session_->implicit.disturb(allocation.device);
      if (!was_refused_) session_->refusals.refused(caller(), allocation);
    }
  }

  // To be called after a call that asks for something else than memory but may need some, on this
  // device or the current one. Records an incident if the call was refused for lack of memory, or a
  // context by the compute mode.
  void refused(CUresult result, ledger::Asked asked, DeviceOrdinal device = no_device) const {
    if (recording()) session_->refusals.refused(caller(), result, asked, device);
  }
  // Does the same after a call that needs memory for itself.
  void refused_for_itself(CUresult result, ledger::Asked asked, DeviceOrdinal device,
                          const rescue::Refusals::Needed& needed) const {
    if (recording()) session_->refusals.refused_for_itself(caller(), result, asked, device, needed);
  }

  // Calls `real_call`, which asks for `asked_for`. If the driver refuses it and rescues are on, the
  // ladder calls it again after each rung that may have helped. Returns the result for the program.
  template <class RealCall>
  CUresult allocate(const tracking::Allocation& asked_for, RealCall real_call) {
    return allocate(asked_for, real_call, rescue::Accepts::drivers_memory).result;
  }
  struct Allocated {
    CUresult result = CUDA_SUCCESS;
    // Address of memory that is not the driver's, which the hook hands to the program; 0: the
    // driver wrote the address, or the request failed.
    std::uint64_t address = 0;
  };
  // Does the same. With Accepts::any_memory a rung may serve the request with other memory than the
  // driver's.
  template <class RealCall>
  Allocated allocate(const tracking::Allocation& asked_for, RealCall real_call,
                     rescue::Accepts accepts) {
    const CUresult result = real_call();
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !recording() || !session_->refusals.rescues() ||
        rescue::is_reclaiming())
      return {result};
    was_refused_ = true;
    const rescue::Rescued rescued =
        session_->refusals.rescue(caller(), asked_for, real_call, accepts);
    return {rescued.served ? CUDA_SUCCESS : result, rescued.address};
  }

  // Frees `address` by calling `real_free`. The record is taken out of the ledger before the call,
  // and put back if the driver refuses: no reader sees a record of memory that is already freed.
  template <class RealFree>
  CUresult freed(Space space, std::uint64_t address, RealFree real_free) {
    if (!recording() || address == 0) return real_free();
    const ledger::TakenRecord taken = session_->allocations.take(space, address);
    const CUresult result = real_free();
    session_->allocations.settle(taken, result);
    return result;
  }

 private:
  const driver::RealDriver& real_;
  Session* session_;
  driver::Row row_;
  std::uint16_t depth_before_ = 0;
  bool was_refused_ = false;  // true once the ladder knows of the request
  const CallMark mark_;
};

// Lasts as long as a hooked runtime function: driver calls inside it are recorded under its name.
class RuntimeCall {
 public:
  [[gnu::always_inline]] explicit RuntimeCall(driver::Row row) : mark_(__builtin_frame_address(0)) {
    forget_left_runtime_call(__builtin_frame_address(0));
    outermost_ = call_state.runtime_row == 0;
    if (!outermost_) return;
    call_state.runtime_row = static_cast<std::uint16_t>(row) + 1;
    call_state.runtime_mark = &mark_;
  }
  ~RuntimeCall() {
    if (!outermost_) return;
    call_state.runtime_row = 0;
    call_state.runtime_mark = nullptr;
  }
  RuntimeCall(const RuntimeCall&) = delete;
  RuntimeCall& operator=(const RuntimeCall&) = delete;

  bool outermost() const { return outermost_; }

 private:
  bool outermost_ = false;
  const CallMark mark_;
};

}  // namespace cuwarden::hooks
