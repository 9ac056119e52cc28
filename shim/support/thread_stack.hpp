// The bounds of a thread's stack.
#pragma once

#include <cstdint>

namespace cuwarden::shim {

// Asks libc for the bounds of the calling thread's stack: addresses from `low` to below `high`.
// Returns false if libc does not tell. Must not be called in the process's first thread. libc
// allocates a little, and takes a lock of the thread, so this is called once in a thread, at its
// first recorded call.
bool find_thread_stack(std::uint64_t& low, std::uint64_t& high) noexcept;

}  // namespace cuwarden::shim
