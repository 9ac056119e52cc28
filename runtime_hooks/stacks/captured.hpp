// The result of a stack walk.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuwarden::stacks {

// Deepest stack that is kept, in frames. It bounds the buffer on the caller's stack to 8 KiB.
inline constexpr std::size_t depth_limit = 1024;

// The length and completeness of a captured stack; the frames are in the caller's buffer.
struct Captured {
  std::size_t count = 0;
  bool truncated = false;  // True if deeper frames were left out.
  // True if the walk reached the thread's first frame. False if it stopped at code that no unwind
  // table describes, such as a JIT compiler's, or if that is not known. (libgcc takes such code for
  // the end of the stack.)
  bool whole = false;
  // True if a signal handler's frame is among those that the walk left.
  bool in_signal_handler = false;
};

}  // namespace cuwarden::stacks
