// Walks the calling thread's stack with the unwinder of libgcc that is linked into this object: a
// quarter of a microsecond a frame. For a process without the memory that the fast walk needs, and
// as the reference for the fast walk.
#pragma once

#include <cstdint>
#include <span>

#include "runtime_hooks/stacks/captured.hpp"

namespace cuwarden::stacks {

// Fills `frames` with the calling thread's stack, innermost frame first, by the unwinder of libgcc
// that is linked into this object. Frames of this object are left out. A frame is an address inside
// the call instruction (the return address less one), or the instruction that a signal interrupted.
// Returns the number of frames, and if `frames` was too small; Captured::whole is always false.
// Takes a quarter of a microsecond a frame. Calls no malloc.
Captured walk_slowly(std::span<std::uint64_t> frames) noexcept;

}  // namespace cuwarden::stacks
