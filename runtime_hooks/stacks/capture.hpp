// The calling thread's stack, by the unwinder of libgcc that is linked into this object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cuwarden::stacks {

// Deepest stack that is kept; bounds the buffer on the caller's stack (8 KiB).
inline constexpr std::size_t depth_limit = 1024;

struct Captured {
  std::size_t count = 0;
  bool truncated = false;  // deeper frames were left out
};

// Fills `frames` innermost first and leaves out the frames of this shared object. A frame is an
// address inside the call instruction: the return address less one, or the interrupted
// instruction itself below a signal handler. Calls no malloc.
Captured capture(std::span<std::uint64_t> frames) noexcept;

}  // namespace cuwarden::stacks
