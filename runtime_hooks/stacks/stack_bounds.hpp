// Tells which parts of stacks can be read. Every read of a walk is checked against a region that is
// known to be readable, so that no stack, however damaged, makes a walk fault.
//
// A thread's own stack is known from its top. The first thread's top is where the loader found the
// arguments. Any other thread's top is its control block, which glibc puts there. libc is asked
// once for the stack's lower end: where there is no guard page, other memory may follow, which may
// be unmapped. The kernel is asked once for each page from the top down to the stack pointer. The
// answer stays true, because a thread's stack stays mapped as long as the thread runs. No map of
// the process is read, and no file is opened.
//
// Other stacks (a signal handler's, a coroutine's) may be unmapped at any time. There the kernel is
// asked in every walk, once for each page that the walk touches.
#pragma once

#include <cstdint>

namespace cuwarden::stacks {

// A range of readable memory.
struct Region {
  std::uint64_t begin = 0;
  // Number of addresses, from `begin` on, at which eight bytes can be read.
  std::uint64_t count = 0;
  bool own = false;  // True for the thread's own stack, false for a page of other memory.

  [[gnu::always_inline]] bool holds(std::uint64_t address) const noexcept {
    return address - begin < count;
  }
};

// The bounds of the calling thread's stack. Only the thread itself reads and writes it, also in
// signal handlers. A handler may run between two stores, so the bounds are valid after each single
// store.
struct OwnStack {
  std::uint64_t low = 0;      // The start of a page; [low, top) is readable.
  std::uint64_t top = 0;      // The stack's upper end; 0 if it is not known.
  std::uint64_t barrier = 0;  // A page below `low` that could not be read; 0 if none was met.
  // The stack's lower end as libc reports it. 0 for the first thread, whose stack may grow.
  std::uint64_t floor = 0;
  bool confirmed = false;  // True once a stack pointer was met in [low, top).
  bool asked = false;      // True once libc was asked, or could not be asked.

  // True if eight bytes can be read at the address.
  bool holds(std::uint64_t address) const noexcept {
    return confirmed && address >= low && address + sizeof(std::uint64_t) <= top;
  }
};

// Writes the lowest address of the calling thread's stack and the address after its highest.
// Returns false if they are not known. Called once for each thread, and never for the first one.
using AskThreadStack = bool (*)(std::uint64_t& low, std::uint64_t& high) noexcept;
// Sets the function that asks libc. Without one, stacks of all threads but the first are taken for
// foreign stacks.
void ask_thread_stacks(AskThreadStack) noexcept;
// Has the calling thread's bounds not asked for any more: libc may take its heap's lock for them,
// and a signal handler may have interrupted the heap. Without them each page is asked about.
void ask_no_more() noexcept;

extern constinit thread_local OwnStack own_stack
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Returns the bytes of the calling thread's own stack that lie below the stack pointer, including
// those that the kernel adds as the stack grows. Returns 0 if the stack pointer lies on another
// stack, or if the stack's lower end is not known. Asks the kernel, so a confined thread gets 0.
std::uint64_t room_below(std::uint64_t stack_pointer) noexcept;

// Returns the region from `begin` to `end`, which must be some words apart.
constexpr Region region_between(std::uint64_t begin, std::uint64_t end, bool own) noexcept {
  return {begin, end - begin - (sizeof(std::uint64_t) - 1), own};
}

// Returns the calling thread's own stack as far as it is known; an empty region if it is not.
inline Region known_own_stack() noexcept {
  const OwnStack& stack = own_stack;
  return stack.confirmed ? region_between(stack.low, stack.top, true) : Region{};
}
// Returns the readable region around the stack pointer, at the start of a walk.
Region find_region_of_stack_pointer(std::uint64_t stack_pointer) noexcept;
inline Region region_of_stack_pointer(std::uint64_t stack_pointer) noexcept {
  return own_stack.holds(stack_pointer) ? known_own_stack()
                                        : find_region_of_stack_pointer(stack_pointer);
}
// Returns the readable region around an address that the walk's region does not hold; an empty
// region if the address cannot be read.
Region region_of(std::uint64_t address) noexcept;

}  // namespace cuwarden::stacks
