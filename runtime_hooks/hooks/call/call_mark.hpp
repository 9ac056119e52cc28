// A mark that lies on the stack while a hooked call is under way. By the mark, cuwarden finds out
// that a call was left without returning: by a longjmp out of a signal handler or out of an error
// callback.
#pragma once

#include <cstdint>

namespace cuwarden::hooks {

class CallMark {
 public:
  // `frame`: __builtin_frame_address(0) of the hooked function.
  explicit CallMark(const void* frame) noexcept : frame_(frame), seal_(sealed()) {}
  ~CallMark() { seal_ = 0; }
  CallMark(const CallMark&) = delete;
  CallMark& operator=(const CallMark&) = delete;

  const void* frame() const noexcept { return frame_; }

  // Returns true if the call that made `mark` is certainly over. `frame` is the frame of the hooked
  // function that asks. In doubt it returns false: the asking call then counts as part of the older
  // one and is not recorded. A wrong true would be worse, for a call of cuwarden's own might be
  // recorded.
  //
  // `mark` may point to memory that is gone. A call that is under way keeps its mark whole, on any
  // stack. A whole mark may nevertheless be a dead one that nothing has overwritten. It is dead if
  // `frame` is as old as the mark's frame or older, on the same stack. On another stack (a signal
  // handler's, a fibre's) the order of addresses means nothing.
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
