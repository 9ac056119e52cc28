// A canary: an object on the stack of a hooked call that is under way, whose damage proves that the
// call is over. By the canary, cuwarden finds out that a call was left without returning: by a
// longjmp out of a signal handler or out of an error callback.
#pragma once

#include <cstdint>

namespace cuwarden::hooks {

// A canary on the stack of a hooked CUDA call, or of cuwarden's own work, that is under way. If a
// longjmp leaves the call without returning from it, a later call of the thread can prove that by
// is_over() in most cases: the canary is damaged, or lies below the later call's frame.
class CallCanary {
 public:
  // `frame` is __builtin_frame_address(0) of the function whose frame holds the canary: a local
  // variable, or a member of one.
  explicit CallCanary(const void* frame) noexcept : frame_(frame), seal_(seal_of(this, frame)) {}
  ~CallCanary() { seal_ = 0; }
  CallCanary(const CallCanary&) = delete;
  CallCanary& operator=(const CallCanary&) = delete;

  // Returns the frame address that was passed to the constructor.
  const void* frame() const noexcept { return frame_; }

  // Returns true if it is proven that the call that made `canary` is over: it has returned, or a
  // longjmp has left it. `canary` is not null. `frame` is the frame address of the hooked function
  // that asks; null: only a damaged canary is a proof. Returns false without proof; the asking call
  // then counts as part of the older call and is not recorded. A wrong true would be worse, because
  // a call of cuwarden's own might be recorded. A canary that is_readable() finds unreadable counts
  // as damaged. There is no proof while is_probing_forbidden() is true.
  //
  // `canary` may point to memory that is unmapped or reused. A call that is under way keeps its
  // canary whole, so a damaged canary is a proof. A whole canary may also be left over, because
  // nothing has overwritten it. The proof is then that `frame` is at the address of the canary's
  // frame or above it, on the thread's own stack. On other stacks (a signal handler's, a fibre's)
  // the order of addresses proves nothing.
  static bool is_over(const CallCanary* canary, const void* frame) noexcept;

 private:
  // Returns the value that `seal_` has in an undamaged canary at the address `canary` whose
  // `frame_` is `frame`. Uses the two addresses as numbers, and reads no memory there.
  static std::uintptr_t seal_of(const CallCanary* canary, const void* frame) noexcept {
    return reinterpret_cast<std::uintptr_t>(frame) ^ reinterpret_cast<std::uintptr_t>(canary) ^
           std::uintptr_t{0x9e3779b97f4a7c15};
  }

  // Frame address of the function in which this canary is a variable (__builtin_frame_address(0)).
  const void* frame_;
  // A number by which an undamaged canary is recognised: the result of seal_of() while the call is
  // under way, 0 after the canary's destructor.
  volatile std::uintptr_t seal_;
};

}  // namespace cuwarden::hooks
