// One call of the program into CUDA, as seen by the hook that understands it.
//
// A call counts once. While a thread is inside a hooked driver function or inside cuwarden's own
// work, further driver calls of the thread go straight to the driver. Driver calls that a hooked
// function of the CUDA runtime makes are recorded under the runtime function's name.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/driver/hook_list.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/hooks/call/call_canary.hpp"
#include "runtime_hooks/hooks/call/session.hpp"
#include "runtime_hooks/hooks/call/session_parts.hpp"
#include "runtime_hooks/ledger/format/record_fields.hpp"
#include "runtime_hooks/ledger/storage/thread_shards.hpp"

namespace cuwarden::hooks {

// Tells if a seccomp filter confines a thread: one that the program itself has installed since
// cuwarden was loaded. `none`: no such filter was seen. `confined`: cuwarden must make no system
// call in the thread that the filter may forbid. `unknown`: not looked up yet for the thread.
enum class Confinement : std::uint32_t { unknown, none, confined };

// The state of one thread's hooked calls. It lies in thread-local memory that is taken out of every
// thread's stack, so it must stay tiny.
struct CallState {
  // Number of hooked driver functions (HookedCall) and scopes of cuwarden's own work (OwnWork) that
  // the thread is inside, one within the other; 0: none. The start of recording counts as one, too.
  std::uint16_t driver_depth = 0;
  // driver::Row + 1 of the outermost hooked function of the CUDA runtime that the thread is inside;
  // 0 if there is none.
  std::uint16_t runtime_row = 0;
  // Tells if a seccomp filter that the program installed confines the thread: may forbid it system
  // calls of cuwarden's. Counts filters that this thread has installed or inherited. A filter that
  // another thread has installed for all threads is not noted here: is_confined() knows of both.
  Confinement confinement = Confinement::unknown;
  // Canary (an object on the stack) of the outermost hooked driver function, or of cuwarden's own
  // work, that the thread is inside. Null outside of both, and during the start of recording. A
  // longjmp that leaves the function does not reset this state; the canary then shows that the call
  // is over.
  const CallCanary* driver_canary = nullptr;
  // Canary (an object on the stack) of the outermost hooked function of the CUDA runtime that the
  // thread is inside; null outside of such a function.
  const CallCanary* runtime_canary = nullptr;
};
static_assert(sizeof(CallState) <= 24);
// The state of the calling thread's hooked calls: how deep it is inside them, under which runtime
// function, and the canaries by which calls are found that a longjmp has left.
extern constinit thread_local CallState call_state
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Function that returns true if the calling thread's stack proves that a function of this shared
// object was left by a jump; false without proof. `own_frame` is the frame address of that
// function. `frame` is the frame address of the hooked function that asks, from which the stack is
// walked.
using ProvesLeft = bool (*)(const void* frame, const void* own_frame) noexcept;
// The function by which a hooked call finds out that an older call was left by a jump. Null until
// the shim sets it, when recording starts.
extern constinit std::atomic<ProvesLeft> frames_prove_left;

// Resets the parts of the calling thread's `call_state` that describe calls which the thread has
// provably left by a longjmp, without returning from them. If a driver call or cuwarden's own work
// is among them, also restores the thread's cancellation state (Uncancelled::end_left()). `frame`
// is __builtin_frame_address(0) of the function of cuwarden that the program has just called.
void forget_left_calls(const void* frame) noexcept;

// Forgets the calls that a longjmp has provably left (forget_left_calls()), if the calling thread's
// `call_state` says that the thread is inside a hooked driver function or cuwarden's own work. To
// be called by functions that the program calls, before they use `call_state` for a driver call.
// `frame` is the calling function's __builtin_frame_address(0).
inline void forget_left_driver_call(const void* frame) noexcept {
  if (call_state.driver_depth != 0 && call_state.driver_canary != nullptr) forget_left_calls(frame);
}
// Forgets the calls that a longjmp has provably left (forget_left_calls()), if the calling thread's
// `call_state` says that the thread is inside a hooked function of the CUDA runtime. To be called
// at the beginning of a hooked runtime function, before `call_state` is used. `frame` is the
// function's __builtin_frame_address(0).
inline void forget_left_runtime_call(const void* frame) noexcept {
  if (call_state.runtime_row != 0) forget_left_calls(frame);
}

// Marks the calling thread as doing cuwarden's own work, for the length of a scope: driver calls of
// the thread are not recorded in the scope. If a longjmp leaves the scope, a later hooked call of
// the thread ends the work, once the jump can be proven.
class [[nodiscard]] OwnWork {
 public:
  // `frame` is __builtin_frame_address(0) of the function in which this object is a local variable.
  explicit OwnWork(const void* frame) noexcept : canary_(frame) {
    depth_before_ = call_state.driver_depth;
    call_state.driver_depth = static_cast<std::uint16_t>(depth_before_ + 1);
    if (depth_before_ == 0) call_state.driver_canary = &canary_;
  }
  ~OwnWork() {
    call_state.driver_depth = depth_before_;
    if (depth_before_ == 0) call_state.driver_canary = nullptr;
  }
  OwnWork(const OwnWork&) = delete;
  OwnWork& operator=(const OwnWork&) = delete;

 private:
  // Canary on the stack, by which a later call finds out if a longjmp has left the work.
  const CallCanary canary_;
  // CallState::driver_depth when the work began; 0 if it began outside of all hooked driver
  // functions.
  std::uint16_t depth_before_;
};

// One call of the program of a driver function, while its hook runs. Only a thread's outermost
// hooked call is recorded: driver calls inside it go straight to the driver.
class HookedCall {
 public:
  // `row` is the hooked function's row in hooks.def. `real` has the functions to which the hook
  // forwards: the driver's, or those of a library that wraps the driver. `session` records the
  // call; null: nothing is recorded. A call that is recorded is also counted in the ledger. `real`
  // and `session` must outlive the object. Always inlined, so that __builtin_frame_address(0) is
  // the hooked function's frame.
  [[gnu::always_inline]] HookedCall(const driver::RealDriver& real, Session* session,
                                    driver::Row row)
      : real_(real), session_(nullptr), row_(row), canary_(__builtin_frame_address(0)) {
    forget_left_driver_call(__builtin_frame_address(0));
    depth_before_ = call_state.driver_depth;
    call_state.driver_depth = static_cast<std::uint16_t>(depth_before_ + 1);
    if (depth_before_ != 0) return;
    call_state.driver_canary = &canary_;
    // If a runtime call is under way, it has called this driver call, and its canary lies at a
    // higher address. A canary that does not is left over from a runtime call that a jump has left.
    if (call_state.runtime_row != 0 && call_state.runtime_canary <= &canary_)
      forget_left_calls(__builtin_frame_address(0));
    session_ = session;
    if (session_ == nullptr) return;
    session_->call_begins(driver::hook_id(row));
  }
  // Ends the call. If the thread is to be cancelled (pthread_cancel) and its cancellation type is
  // asynchronous, unwinds the stack; but not inside a hooked function of the CUDA runtime, which
  // may have locks to release.
  ~HookedCall() noexcept(false) {
    call_state.driver_depth = depth_before_;
    if (depth_before_ == 0) call_state.driver_canary = nullptr;
    if (session_ != nullptr) session_->call_ends(keeps_bases_);
    if (depth_before_ == 0 && call_state.runtime_row == 0) Uncancelled::restore_type();
  }
  HookedCall(const HookedCall&) = delete;
  HookedCall& operator=(const HookedCall&) = delete;

  // Returns the functions to which the hook forwards: the driver's, or those of a library that
  // wraps the driver.
  const driver::RealDriver& real() const { return real_; }

  // True if this call is to be recorded: recording is on, and the thread is inside no other hooked
  // driver call and no work of cuwarden's own. Only then may memory(), graphs() and execution() be
  // called.
  bool recording() const { return session_ != nullptr; }
  // Returns the parts of the recording that hooks of memory calls use. Must not be called if
  // recording() is false.
  MemoryParts memory() const { return MemoryParts(*session_); }
  // Returns the parts of the recording that hooks of graph calls use. Must not be called if
  // recording() is false.
  GraphParts graphs() const { return GraphParts(*session_); }
  // Returns the parts of the recording that hooks of contexts, streams and kernels use. Must not be
  // called if recording() is false.
  ExecutionParts execution() const { return ExecutionParts(*session_); }

  // Returns the function that the report names for this call, and the frame at which the call stack
  // begins. If the driver was called inside hooked functions of the CUDA runtime, the report names
  // the outermost of these.
  tracking::Caller caller() const {
    return {call_state.runtime_row != 0
                ? HookId{static_cast<std::uint16_t>(call_state.runtime_row - 1)}
                : driver::hook_id(row_),
            canary_.frame()};
  }

  // Keeps the bases, the readings of free device memory from which later calls are measured
  // (FreeBases). Without a call of this function, they are forgotten when the hooked call ends,
  // because it may have changed a device's memory. To be called if the hooked call has changed
  // none, or only by amounts that were measured or that ImplicitObjects is still to find out.
  void keeps_bases() noexcept { keeps_bases_ = true; }

  // Records the outcome of a request for memory. `result` is the final result for the program,
  // after all attempts of allocate() to serve the request. On success, records `allocation`; an
  // address of 0 gets no record. After CUDA_ERROR_OUT_OF_MEMORY, counts a refused request, unless
  // allocate() of this object has counted it already. Does nothing after other errors, or if
  // recording() is false.
  void allocated(CUresult result, const tracking::Allocation& allocation) {
    if (!recording()) return;
    if (result == CUDA_SUCCESS) {
      const DeviceOrdinal device = session_->allocations.allocated(caller(), allocation);
      if (allocation.address != 0 && !was_refused_)
        session_->refusals.served(caller(), allocation, device);
    } else if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      // The failed call may have changed how much memory is free on the allocation's device, which
      // need not be the current one.
      if (!allocation.host) session_->implicit.disturb(allocation.device);
      if (!was_refused_) session_->refusals.refused(caller(), allocation);
    }
  }

  // Tries to make a failed driver call succeed that was not asked for memory, but needs some for
  // its own work. `result`: the driver's result. `need`: the memory that the call needed. `again`:
  // repeats the call.
  //
  // Records an incident (a refused request) if `result` says that the call lacked that memory, or
  // that the device's compute mode forbade a context. If rescues are on, rungs (ordered attempts to
  // serve a refused request) then try to make room, and call `again` any number of times. Returns
  // the result for the program.
  CUresult rescued(CUresult result, const rescue::Need& need, FunctionRef<CUresult()> again) const {
    if (!recording() || result == CUDA_SUCCESS) return result;
    // Rungs change the memory of devices before and after the attempts.
    tracking::FreeBases& bases = session_->implicit.bases;
    const auto attempt = [&] {
      bases.memory_may_change();
      return again();
    };
    const CUresult answer = session_->refusals.rescue(caller(), result, need, attempt);
    bases.memory_may_change();
    return answer;
  }

  // Calls `real_call`, which asks the driver for the memory that `asked_for` describes. If the
  // driver refuses for lack of memory, tries to serve the request by rungs: ordered attempts that
  // make room and call `real_call` again, any number of times. No rung is tried if the call is not
  // recorded, if rescues are off, or for a request of a reclaimer (a callback that empties a
  // cache). Returns CUDA_SUCCESS if the driver has served the request in the end; otherwise the
  // result of the first call.
  template <class RealCall>
  CUresult allocate(const tracking::Allocation& asked_for, RealCall real_call) {
    return allocate(asked_for, real_call, rescue::Accepts::drivers_memory).result;
  }
  // The outcome of a request for memory, after all attempts to serve it.
  struct Allocated {
    CUresult result = CUDA_SUCCESS;  // The result for the program.
    // Address of memory of cuwarden's own, which the hook must hand to the program. 0 if the driver
    // has served the request and has written the address itself, or if the request failed.
    std::uint64_t address = 0;
  };
  // Calls `real_call`, which asks the driver for the memory that `asked_for` describes. If the
  // driver refuses for lack of memory, tries to serve the request by rungs: ordered attempts that
  // make room and call `real_call` again, any number of times. No rung is tried if the call is not
  // recorded, if rescues are off, or for a request of a reclaimer (a callback that empties a
  // cache). With Accepts::any_memory a rung may serve the request with cuwarden's own memory
  // instead. The caller must then hand Allocated::address to the program.
  template <class RealCall>
  Allocated allocate(const tracking::Allocation& asked_for, RealCall real_call,
                     rescue::Accepts accepts) {
    const CUresult result = real_call();
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !recording() ||
        session_->refusals.obstacle() != ledger::LeftOut::none)
      return {result};
    was_refused_ = true;
    const rescue::Rescued rescued =
        session_->refusals.rescue(caller(), asked_for, real_call, accepts);
    return {rescued.served ? CUDA_SUCCESS : result, rescued.address};
  }

  // Calls `real_free`, which has the driver free `address`, and returns its result. `space`: kind
  // of number that `address` is, such as a pointer or a handle. Takes the allocation's record out
  // of the ledger before the call, so that no reader finds a record of memory that is already
  // freed. Puts the record back if the driver refuses. Leaves the ledger alone if the call is not
  // recorded or `address` is 0.
  template <class RealFree>
  CUresult freed(Space space, std::uint64_t address, RealFree real_free) {
    return freed(space, address, real_free, [](const ledger::TakenRecord&) {});
  }
  // Calls `real_free` as the other freed() does. If the driver has freed an allocation that had a
  // record, calls note(record), before any reading of the device's free memory.
  template <class RealFree, class Note>
  CUresult freed(Space space, std::uint64_t address, RealFree real_free, Note note) {
    if (!recording() || address == 0) return real_free();
    const ledger::TakenRecord taken = session_->allocations.take(space, address);
    const CUresult result = real_free();
    if (result == CUDA_SUCCESS && taken) note(taken);
    session_->allocations.settle(taken, result);
    return result;
  }

 private:
  // The functions to which the hook forwards.
  const driver::RealDriver& real_;
  // The session that records the call; null if the call is not recorded.
  Session* session_;
  // Row of the hooked function in hooks.def.
  driver::Row row_;
  // CallState::driver_depth when the call began; 0 if the thread was inside no other hooked driver
  // function.
  std::uint16_t depth_before_ = 0;
  // True once the driver has refused the request and allocate() has passed it to
  // Refusals::rescue(), which counts the refusal.
  bool was_refused_ = false;
  // True once keeps_bases() was called: the end of the call forgets no bases (readings of free
  // memory by which later calls are measured).
  bool keeps_bases_ = false;
  // Canary on the stack, by which a later call finds out if a longjmp has left this one.
  const CallCanary canary_;
};

// Marks the calling thread as being inside a hooked function of the CUDA runtime, for the length of
// a scope. Driver calls in the scope are recorded under the name of the outermost such function.
class RuntimeCall {
 public:
  // `row` is the runtime function's row in hooks.def. Always inlined, so that
  // __builtin_frame_address(0) is the hooked function's frame.
  [[gnu::always_inline]] explicit RuntimeCall(driver::Row row)
      : canary_(__builtin_frame_address(0)) {
    forget_left_runtime_call(__builtin_frame_address(0));
    outermost_ = call_state.runtime_row == 0;
    if (!outermost_) return;
    call_state.runtime_row = static_cast<std::uint16_t>(row) + 1;
    call_state.runtime_canary = &canary_;
  }
  // Ends the call. If the thread is to be cancelled (pthread_cancel) and its cancellation type is
  // asynchronous, unwinds the stack.
  ~RuntimeCall() noexcept(false) {
    if (!outermost_) return;
    call_state.runtime_row = 0;
    call_state.runtime_canary = nullptr;
    if (call_state.driver_depth == 0) Uncancelled::restore_type();
  }
  RuntimeCall(const RuntimeCall&) = delete;
  RuntimeCall& operator=(const RuntimeCall&) = delete;

 private:
  // True if the hooked runtime function was not called by another hooked runtime function.
  bool outermost_ = false;
  // Canary on the stack, by which a later call finds out if a longjmp has left this one.
  const CallCanary canary_;
};

}  // namespace cuwarden::hooks
