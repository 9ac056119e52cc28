// Where stacks can be read. Every read of a walk is checked against a region that is known to be
// readable, so that no stack, however damaged, makes a walk fault.
//
// A thread's own stack is known from its top: the first thread's top is where the loader found the
// arguments, any other's is the thread's control block, which glibc puts there. From the top down
// to the stack pointer, the kernel is asked page by page, once; what was found stays true, for a
// thread's stack stays mapped as long as the thread runs. No map of the process is read, nothing
// is opened. Other stacks (a signal handler's, a coroutine's) may go at any time: there the kernel
// is asked in every walk, once for each page that it touches.
#pragma once

#include <cstdint>

namespace cuwarden::stacks {

// Readable memory.
struct Region {
  std::uint64_t begin = 0;
  std::uint64_t count = 0;  // of the addresses at which eight bytes can be read
  bool own = false;         // the thread's own stack, not only a page of some memory

  [[gnu::always_inline]] bool holds(std::uint64_t address) const noexcept {
    return address - begin < count;
  }
};

// The calling thread's own stack as far as it is known; holds nothing where it is not.
Region known_own_stack() noexcept;
// For the start of a walk.
Region region_of_stack_pointer(std::uint64_t stack_pointer) noexcept;
// For an address that the walk's region does not hold. One that holds nothing: it cannot be read.
Region region_of(std::uint64_t address) noexcept;

}  // namespace cuwarden::stacks
