// Walks the calling thread's stack with the unwinder of libgcc that is linked into this object: a
// quarter of a microsecond a frame. For a process without the memory that the fast walk needs, and
// as the reference for the fast walk.
#pragma once

#include <cstdint>
#include <span>

#include "runtime_hooks/stacks/captured.hpp"

namespace cuwarden::stacks {

// Fills `frames`, innermost first, without the frames of this shared object. A frame is an address
// inside the call instruction: the return address less one, or the interrupted instruction itself
// below a signal handler. Calls no malloc.
Captured walk_slowly(std::span<std::uint64_t> frames) noexcept;

}  // namespace cuwarden::stacks
