// The bounds of a thread's stack.
#pragma once

#include <cstdint>

namespace cuwarden::shim {

// Asks libc for the bounds of the calling thread's stack, for stacks::ask_thread_stacks. Not for
// the first thread. libc allocates a little meanwhile, and takes a lock of the thread's own. So
// this is called once a thread, in its first recorded call.
bool find_thread_stack(std::uint64_t& low, std::uint64_t& high) noexcept;

}  // namespace cuwarden::shim
