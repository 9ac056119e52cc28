// The call that asks for memory, as the report shows it.
#pragma once

#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::tracking {

// The call by which the program asks for memory. `api`: function that the report names. `frame`:
// __builtin_frame_address(0) of the hooked function, which is still running; call stacks begin
// there.
struct Caller {
  Caller(HookId name, const void* seen_from) noexcept : api(name), frame(seen_from) {}

  HookId api;
  const void* frame;
};

}  // namespace cuwarden::tracking
