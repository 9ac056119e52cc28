// Where stacks can be read. Every read of a walk is checked against a region that is known to be
// readable, so that no stack, however damaged, makes a walk fault.
//
// A thread's own stack is known from its top: the first thread's top is where the loader found the
// arguments, any other's is the thread's control block, which glibc puts there. How far down it
// reaches libc knows, and is asked once: where there is no guard page, other memory may follow,
// which may go. From the top down to the stack pointer, the kernel is asked page by page, once;
// what was found stays true, for a thread's stack stays mapped as long as the thread runs. No map
// of the process is read, nothing is opened. Other stacks (a signal handler's, a coroutine's) may
// go at any time: there the kernel is asked in every walk, once for each page that it touches.
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

// Per thread. Read and written by the thread itself alone, a signal handler in between included:
// every state between two stores is a true one.
struct OwnStack {
  std::uint64_t low = 0;      // a page's begin; [low, top) is readable
  std::uint64_t top = 0;      // 0: not known
  std::uint64_t barrier = 0;  // a page below `low` that could not be read; 0: none was met
  std::uint64_t floor = 0;    // where the stack begins, as libc says; the first thread's may grow
  bool confirmed = false;     // a stack pointer was met in it
  bool asked = false;         // libc, or there is nobody to ask

  // Whether eight bytes can be read there.
  bool holds(std::uint64_t address) const noexcept {
    return confirmed && address >= low && address + sizeof(std::uint64_t) <= top;
  }
};

// Gives the lowest address of the calling thread's stack and the one behind its highest, and
// returns whether it could. Of the first thread it is not asked. Called once a thread.
using AskThreadStack = bool (*)(std::uint64_t& low, std::uint64_t& high) noexcept;
// Without one, stacks of other threads than the first are taken for foreign ones.
void ask_thread_stacks(AskThreadStack) noexcept;

extern constinit thread_local OwnStack own_stack
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// What lies from `begin` to `end`, which are some words apart.
constexpr Region region_between(std::uint64_t begin, std::uint64_t end, bool own) noexcept {
  return {begin, end - begin - (sizeof(std::uint64_t) - 1), own};
}

// The calling thread's own stack as far as it is known; holds nothing where it is not.
inline Region known_own_stack() noexcept {
  const OwnStack& stack = own_stack;
  return stack.confirmed ? region_between(stack.low, stack.top, true) : Region{};
}
// For the start of a walk.
Region find_region_of_stack_pointer(std::uint64_t stack_pointer) noexcept;
inline Region region_of_stack_pointer(std::uint64_t stack_pointer) noexcept {
  return own_stack.holds(stack_pointer) ? known_own_stack()
                                        : find_region_of_stack_pointer(stack_pointer);
}
// For an address that the walk's region does not hold. One that holds nothing: it cannot be read.
Region region_of(std::uint64_t address) noexcept;

}  // namespace cuwarden::stacks
