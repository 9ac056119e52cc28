// A mark on the stack for as long as a hooked call is under way, by which is found out whether a
// call was left without returning: by a longjmp out of a signal handler or of an error callback.
#pragma once

#include <cstdint>

namespace cuwarden::hooks {

class CallMark {
 public:
  // `frame`: of the hooked function, by __builtin_frame_address(0).
  explicit CallMark(const void* frame) noexcept : frame_(frame), seal_(sealed()) {}
  ~CallMark() { seal_ = 0; }
  CallMark(const CallMark&) = delete;
  CallMark& operator=(const CallMark&) = delete;

  const void* frame() const noexcept { return frame_; }

  // Whether the call that had its mark here is certainly over, as seen from a hooked function with
  // this frame. In doubt, no: then the newer call counts as a part of it, and is not recorded.
  // What is taken for over while it is not might be recorded in the midst of our own work.
  //
  // `mark` may point to memory that is gone. A call that is under way keeps its mark whole, on
  // whatever stack it is. A whole mark may still be a dead one that nothing has written over: then
  // a frame that is as old or older, on the same stack, tells. On other stacks (a signal handler's,
  // a fibre's) the order of addresses means nothing.
  static bool is_over(const CallMark* mark, const void* frame) noexcept;

 private:
  std::uintptr_t sealed() const noexcept {
    return reinterpret_cast<std::uintptr_t>(frame_) ^ reinterpret_cast<std::uintptr_t>(this) ^
           std::uintptr_t{0x9e3779b97f4a7c15};
  }

  const void* frame_;
  volatile std::uintptr_t seal_;
};

}  // namespace cuwarden::hooks
