// The call that asks for memory, as the report shows it.
#pragma once

#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::tracking {

// The program's call: the name that the report gives it, and the frame of the hooked function, as
// its __builtin_frame_address(0). Stacks are seen from there; the function goes on running.
struct Caller {
  Caller(HookId name, const void* seen_from) noexcept : api(name), frame(seen_from) {}

  HookId api;
  const void* frame;
};

}  // namespace cuwarden::tracking
