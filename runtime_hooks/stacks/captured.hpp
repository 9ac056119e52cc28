// The result of a stack walk.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuwarden::stacks {

// Most frames of a stack that are kept. The buffer for them takes 8 KiB of the caller's own stack.
inline constexpr std::size_t depth_limit = 1024;

// The length and completeness of a call stack that was walked. The frames themselves are in a
// buffer of the caller's.
struct Captured {
  // Number of frames in the buffer.
  std::size_t count = 0;
  // True if the stack has more frames than the buffer holds: either the buffer was full, or the
  // walk met a frame that it could not leave. False if the walk stopped at code that no unwind
  // table describes.
  bool truncated = false;
  // True if the buffer holds all frames up to the thread's first one. False if the walk stopped
  // before, as at code that no unwind table describes (a JIT compiler's), or if that is not known.
  // libgcc's unwinder takes such code for the end of the stack.
  bool whole = false;
  // True if the walk passed the frame that the kernel puts on the stack for a signal handler. False
  // if the walk was done by libgcc's unwinder.
  bool in_signal_handler = false;
  // The stack pointer in the outermost frame of the walk. 0 if the walk was done by libgcc's
  // unwinder.
  std::uint64_t outermost_sp = 0;
};

}  // namespace cuwarden::stacks
