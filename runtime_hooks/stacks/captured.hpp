// What a walk yields.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuwarden::stacks {

// Deepest stack that is kept; bounds the buffer on the caller's stack (8 KiB).
inline constexpr std::size_t depth_limit = 1024;

struct Captured {
  std::size_t count = 0;
  bool truncated = false;  // deeper frames were left out
  // The walk reached the thread's first frame: not where code begins that nobody describes, as a
  // JIT compiler's, which libgcc takes for the end as well. False where nobody knows.
  bool whole = false;
};

}  // namespace cuwarden::stacks
