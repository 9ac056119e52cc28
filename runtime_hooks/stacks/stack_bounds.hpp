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
// asked in every walk, once for each page that the walk touches. If a seccomp filter forbids the
// question (is_probing_forbidden()), nothing on such a stack counts as readable but the page of the
// stack pointer.
#pragma once

#include <cstdint>

namespace cuwarden::stacks {

// A range of readable memory, on a stack that is being walked.
struct Region {
  std::uint64_t begin = 0;  // The lowest address of the range.
  // Number of addresses, from `begin` on, at which eight bytes can be read; 0: the region is empty.
  std::uint64_t count = 0;
  // True if the readable range is the calling thread's own stack, false for a page of other memory.
  bool own = false;

  // True if eight bytes can be read at the address.
  [[gnu::always_inline]] bool holds(std::uint64_t address) const noexcept {
    return address - begin < count;
  }
};

// The bounds of the calling thread's stack, as far as they are known. Only the thread itself reads
// and writes them, also in signal handlers. A handler may run between two stores, so the bounds are
// valid after each store.
struct OwnStack {
  // Address of the lowest page of the thread's stack that is known to be readable. All bytes from
  // here up to `top` can be read.
  std::uint64_t low = 0;
  // The address after the stack's highest byte; 0 if it is not known.
  std::uint64_t top = 0;
  // Address of the page below `low` (the lowest readable page), if that page was found unreadable;
  // 0 otherwise.
  std::uint64_t barrier = 0;
  // The stack's lowest address, as libc reports it. 0 for the process's first thread, whose stack
  // may grow, or if libc was not asked or did not know it.
  std::uint64_t floor = 0;
  // True once the thread was seen to run between `low` and `top`, the bounds of its stack. Before
  // that, the bounds are not used.
  bool confirmed = false;
  // True if libc must not be asked for the bounds of the thread's stack any more: it was asked
  // already, or ask_no_more() was called.
  bool asked = false;

  // True if the bounds of the thread's stack are known, and eight bytes can be read at the address
  // inside them.
  bool holds(std::uint64_t address) const noexcept {
    return confirmed && address >= low && address + sizeof(std::uint64_t) <= top;
  }
};

// A function that asks libc for the bounds of the calling thread's stack. Writes the lowest address
// to `low` and the address after the highest byte to `high`. Returns false if libc does not know
// them. Called at most once in each thread, and not in the process's first one.
using AskThreadStack = bool (*)(std::uint64_t& low, std::uint64_t& high) noexcept;
// Sets the function that asks libc for the bounds of a thread's stack; null for none. Without one,
// only the bounds of the first thread's stack are known; on other stacks, every walk of the stack
// checks page by page if it can be read.
void ask_thread_stacks(AskThreadStack) noexcept;
// Keeps the calling thread from asking libc for the bounds of its stack from now on. For the answer
// libc may lock its heap; if a signal handler has interrupted a function of the heap, that would
// hang. A thread whose bounds are not known yet checks in every walk if the stack's pages can be
// read.
void ask_no_more() noexcept;

// The bounds of the calling thread's stack.
extern constinit thread_local OwnStack own_stack
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Returns the bytes of the calling thread's own stack that lie below the stack pointer, including
// those that the kernel adds as the stack grows. Of the first thread's stack, only the 64 MiB below
// its top count. Returns 0 if the stack pointer lies on another stack, or if the stack's lower end
// is not known. Returns 0, too, if the thread runs under a seccomp filter of the program: the
// kernel must not be asked then.
std::uint64_t room_below(std::uint64_t stack_pointer) noexcept;

// Returns the region of the readable bytes from `begin` up to, but not including, `end`. There must
// be at least eight of them. `own` is true for the calling thread's own stack.
constexpr Region region_between(std::uint64_t begin, std::uint64_t end, bool own) noexcept {
  return {begin, end - begin - (sizeof(std::uint64_t) - 1), own};
}

// Returns the calling thread's own stack as far as it is known to be readable; an empty region if
// it is not known.
inline Region known_own_stack() noexcept {
  const OwnStack& stack = own_stack;
  return stack.confirmed ? region_between(stack.low, stack.top, true) : Region{};
}
// Does the work of region_of_stack_pointer() when `own_stack` does not contain the stack pointer.
// Finds the bounds of the thread's stack, or extends them down to the stack pointer. Asks libc and
// the kernel if needed. If the stack pointer lies outside the thread's own stack, returns the
// readable bytes of its page; an empty region if the page cannot be read. If a seccomp filter
// forbids to ask the kernel, the stack pointer's page counts as readable. So does the own stack
// from its known part down to a stack pointer, if that is no more than 1 MiB below.
Region find_region_of_stack_pointer(std::uint64_t stack_pointer) noexcept;
// Returns the readable region around the stack pointer, with which a walk begins; an empty region
// if the stack pointer's page cannot be read. Asks libc and the kernel only if needed.
inline Region region_of_stack_pointer(std::uint64_t stack_pointer) noexcept {
  return own_stack.holds(stack_pointer) ? known_own_stack()
                                        : find_region_of_stack_pointer(stack_pointer);
}
// Returns the readable region around an address on any stack: the thread's own stack, or a page
// that the kernel has found readable. Returns an empty region if the address cannot be read or,
// outside the own stack, is no multiple of 8. Returns an empty region, too, outside the known own
// stack if a seccomp filter forbids to ask the kernel.
Region region_of(std::uint64_t address) noexcept;

}  // namespace cuwarden::stacks
