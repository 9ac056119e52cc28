// The result of a walk of a call stack: the number of its frames, and if they are all there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuwarden::stacks {

// Largest number of frames that are kept of one call stack, the innermost ones. A buffer for so
// many addresses takes 8 KiB, on the stack of the thread that is walked.
inline constexpr std::size_t depth_limit = 1024;

// The length and completeness of a call stack that was walked. The frames themselves are in the
// buffer that was passed for the walk.
struct Captured {
  // Number of frames in the buffer that was passed for the walk.
  std::size_t count = 0;
  // True if outer frames are missing: the buffer was full, or the stack or an unwind table is
  // damaged or too unusual for the walk. False also if the walk ended at code that no unwind table
  // describes: libgcc's unwinder ends there, too.
  bool truncated = false;
  // True if the buffer of the walk holds all frames up to the thread's first one, except those of
  // this shared object, which are left out. False if frames are missing, or if libgcc's unwinder
  // did the walk: it does not say why it ended.
  bool whole = false;
  // True if the walk passed the frame that the kernel puts on the stack for a signal handler. False
  // also if libgcc's unwinder did the walk.
  bool in_signal_handler = false;
  // True if the walk passed the frame that Unwinder::capture() got as `own_frame`. False also if
  // libgcc's unwinder did the walk.
  bool met_own_frame = false;
  // Value of the stack pointer (rsp) in the outermost frame that the walk reached. The buffer may
  // lack this frame. 0 if libgcc's unwinder did the walk.
  std::uint64_t outermost_sp = 0;
};

}  // namespace cuwarden::stacks
