// Finds the bounds of a thread's stack, for walking the stack.
#pragma once

#include <cstdint>

namespace cuwarden::shim {

// Asks libc for the bounds of the calling thread's stack. Sets `low` to its lowest address and
// `high` to the address behind its last byte, and returns true. Returns false if libc does not
// tell; then `low` and `high` mean nothing. Must not be called in the process's first thread. To be
// called once in each other thread, at its first recorded call, since libc allocates some memory
// and takes a lock of the thread.
bool find_thread_stack(std::uint64_t& low, std::uint64_t& high) noexcept;

}  // namespace cuwarden::shim
