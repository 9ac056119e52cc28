// One call of the program into CUDA, as seen by the hook that understands it.
//
// A call counts once, under its outermost API: while a thread is inside a hooked driver function
// (or inside the shim's own work), further driver calls of that thread go straight through; a
// hooked runtime function lends its name to the driver calls below it.
#pragma once

#include <atomic>
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

// Tells if a seccomp filter that was installed after recording began confines a thread. `none`: no
// such filter was seen. `confined`: cuwarden must not make system calls in the thread that the
// filter may forbid. `unknown`: this was not looked up yet for the thread.
enum class Confinement : std::uint32_t { unknown, none, confined };

// The state of one thread's hooked calls. It lies in thread-local memory that is taken out of every
// thread's stack, so it must stay tiny.
struct CallState {
  // Number of hooked driver functions that the thread is inside, one called by the other.
  std::uint16_t driver_depth = 0;
  // driver::Row + 1 of the outermost hooked function of the CUDA runtime that the thread is inside;
  // 0 if there is none.
  std::uint16_t runtime_row = 0;
  Confinement confinement = Confinement::unknown;
  // Mark of the outermost hooked driver function, or of cuwarden's own work, that the thread is
  // inside. Null outside of both, and during the start of recording. A longjmp that leaves the
  // function does not reset this state; the mark then shows that the call is over.
  const CallMark* driver_mark = nullptr;
  // Mark of the outermost hooked runtime function that the thread is inside; null outside of such a
  // function.
  const CallMark* runtime_mark = nullptr;
};
static_assert(sizeof(CallState) <= 24);
// The calling thread's state.
extern constinit thread_local CallState call_state
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Function that returns true if the call frames of the calling thread prove that a function was
// left by a jump. `frame` is the frame address of the hooked function that asks, and `own_frame`
// that of the function, which belongs to this shared object. Null until the shim sets it, when
// recording starts.
using ProvesLeft = bool (*)(const void* frame, const void* own_frame) noexcept;
extern constinit std::atomic<ProvesLeft> frames_prove_left;

// Resets the calling thread's state if it has left its hooked calls by a longjmp, without returning
// from them. `frame` is the frame address of the hooked function that asks.
void forget_left_calls(const void* frame) noexcept;

// Calls forget_left_calls() if the thread seems to be inside a hooked driver function. To be called
// before the thread's state decides about a driver call. `frame` is the frame address of the hooked
// function.
inline void forget_left_driver_call(const void* frame) noexcept {
  if (call_state.driver_depth != 0 && call_state.driver_mark != nullptr) forget_left_calls(frame);
}
// Calls forget_left_calls() if the thread seems to be inside a hooked function of the CUDA runtime.
// To be called before the thread's state decides about a runtime call. `frame` is the frame address
// of the hooked function.
inline void forget_left_runtime_call(const void* frame) noexcept {
  if (call_state.runtime_row != 0) forget_left_calls(frame);
}

// Marks cuwarden's own work in a thread for the length of a scope: driver calls that it makes are
// not recorded. If a longjmp leaves the scope, a later call finds that out, as for a hooked call.
class [[nodiscard]] OwnWork {
 public:
  // `frame` is __builtin_frame_address(0) of the function that works.
  explicit OwnWork(const void* frame) noexcept : mark_(frame) {
    depth_before_ = call_state.driver_depth;
    call_state.driver_depth = static_cast<std::uint16_t>(depth_before_ + 1);
    if (depth_before_ == 0) call_state.driver_mark = &mark_;
  }
  ~OwnWork() {
    call_state.driver_depth = depth_before_;
    if (depth_before_ == 0) call_state.driver_mark = nullptr;
  }
  OwnWork(const OwnWork&) = delete;
  OwnWork& operator=(const OwnWork&) = delete;

 private:
  const CallMark mark_;
  // CallState::driver_depth when the work began.
  std::uint16_t depth_before_;
};

// One call of the program of a driver function, while its hook runs. Only a thread's outermost
// hooked call is recorded: driver calls inside it go straight to the driver.
class HookedCall {
 public:
  // `row` is the hooked function's row in hooks.def, and `real` the driver's functions. `session`
  // records the call; null if nothing is recorded. Always inlined, so that
  // __builtin_frame_address(0) is the hooked function's frame.
  [[gnu::always_inline]] HookedCall(const driver::RealDriver& real, Session* session,
                                    driver::Row row)
      : real_(real), session_(nullptr), row_(row), mark_(__builtin_frame_address(0)) {
    forget_left_driver_call(__builtin_frame_address(0));
    depth_before_ = call_state.driver_depth;
    call_state.driver_depth = static_cast<std::uint16_t>(depth_before_ + 1);
    if (depth_before_ != 0) return;
    call_state.driver_mark = &mark_;
    // If a runtime call is under way, it has called this driver call, and its mark lies at a higher
    // address. A mark that does not is left over from a runtime call that a jump has left.
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

  // Returns the driver's own functions, which the hook calls.
  const driver::RealDriver& real() const { return real_; }

  // True if this call is to be recorded: a recording is on, and the call is the thread's outermost
  // one. memory(), graphs() and execution() may be called only then.
  bool recording() const { return session_ != nullptr; }
  // Returns the session's parts for hooks of memory calls. Only if recording().
  MemoryParts memory() const { return MemoryParts(*session_); }
  // Returns the session's parts for hooks of graph calls. Only if recording().
  GraphParts graphs() const { return GraphParts(*session_); }
  // Returns the session's parts for hooks of contexts, streams and kernels. Only if recording().
  ExecutionParts execution() const { return ExecutionParts(*session_); }

  // Returns the call as the report shows it, and the frame at which its stack begins. If a function
  // of the CUDA runtime called the driver, the call has that function's name.
  tracking::Caller caller() const {
    return {call_state.runtime_row != 0
                ? HookId{static_cast<std::uint16_t>(call_state.runtime_row - 1)}
                : driver::hook_id(row_),
            mark_.frame()};
  }

  // To be called after the driver's allocating function, with its result. Records `allocation` if
  // the function succeeded. If memory was lacking, counts a refused request, unless the ladder has
  // done so.
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

  // To be called after a driver function that was not asked for memory but may need some, on
  // `device` or (for no_device) on the current one. `asked` says what it was asked for. Records an
  // incident if the function lacked memory, or if the device's compute mode forbade a context.
  void refused(CUresult result, ledger::Asked asked, DeviceOrdinal device = no_device) const {
    if (recording()) session_->refusals.refused(caller(), result, asked, device);
  }
  // To be called after a driver function that needs device memory for its own work. Records an
  // incident if the function lacked memory. `asked` says what it was asked for. `device`: the
  // device whose memory the function needs. `needed`: how many bytes the function needed (0:
  // unknown), and how many the driver gave back to the device in vain.
  void refused_for_itself(CUresult result, ledger::Asked asked, DeviceOrdinal device,
                          const rescue::Refusals::Needed& needed) const {
    if (recording()) session_->refusals.refused_for_itself(caller(), result, asked, device, needed);
  }

  // Calls `real_call`, which asks the driver for the memory that `asked_for` describes. If the
  // driver refuses for lack of memory and rescues are on, the ladder of rungs tries to make room
  // and calls `real_call` again. Returns the result for the program.
  template <class RealCall>
  CUresult allocate(const tracking::Allocation& asked_for, RealCall real_call) {
    return allocate(asked_for, real_call, rescue::Accepts::drivers_memory).result;
  }
  // The result of allocate() with rescue::Accepts.
  struct Allocated {
    CUresult result = CUDA_SUCCESS;  // The result for the program.
    // Address of memory that is not the driver's, for the hook to hand to the program. 0 if the
    // driver has served the request and has written the address itself, or if the request failed.
    std::uint64_t address = 0;
  };
  // Calls `real_call`, which asks the driver for the memory that `asked_for` describes. If the
  // driver refuses for lack of memory and rescues are on, the ladder of rungs tries to make room
  // and calls `real_call` again. With Accepts::any_memory a rung may serve the request with
  // cuwarden's own memory instead.
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

  // Calls `real_free`, which has the driver free `address`, and returns its result. `space`: kind
  // of number that `address` is, such as a pointer or a handle. The allocation's record is taken
  // out of the ledger before, and put back if the driver refuses. So no reader sees a record of
  // memory that is already freed.
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
  // Null if the call is not recorded.
  Session* session_;
  driver::Row row_;
  // CallState::driver_depth when the call began; 0 for the outermost call.
  std::uint16_t depth_before_ = 0;
  // True once the driver has refused the request and the ladder has been asked.
  bool was_refused_ = false;
  const CallMark mark_;
};

// Lasts as long as a hooked function of the CUDA runtime runs. Driver calls inside it are recorded
// under the runtime function's name.
class RuntimeCall {
 public:
  // `row` is the runtime function's row in hooks.def. Always inlined, so that
  // __builtin_frame_address(0) is the hooked function's frame.
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

  // True if no other hooked runtime function has called this one.
  bool outermost() const { return outermost_; }

 private:
  bool outermost_ = false;
  const CallMark mark_;
};

}  // namespace cuwarden::hooks
