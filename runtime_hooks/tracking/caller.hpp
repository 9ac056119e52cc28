// A CUDA call of the program: the function's name, and the frame from which its stack is walked.
#pragma once

#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::tracking {

// A CUDA call of the program, which may ask for memory. The hook of the called function makes this
// object.
struct Caller {
  // `name` is the CUDA function that the program called, and `seen_from` is
  // __builtin_frame_address(0) of its hook.
  Caller(HookId name, const void* seen_from) noexcept : api(name), frame(seen_from) {}

  // The CUDA function that the program called, which the report names.
  HookId api;
  // __builtin_frame_address(0) of the hook, which is still running. Walks of the call stack begin
  // at this frame, and leave out frames of cuwarden itself.
  const void* frame;
};

}  // namespace cuwarden::tracking
