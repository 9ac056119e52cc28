#include "runtime_hooks/stacks/stack_bounds.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/core/memory/readable.hpp"

// The loader's symbol: the stack pointer with which the process began.
extern "C" void* __libc_stack_end;

namespace cuwarden::stacks {

constinit thread_local OwnStack own_stack;

namespace {

// The farthest distance, in bytes, between a stack's top and a stack pointer that is looked for in
// it.
constexpr std::uint64_t reach = std::uint64_t{64} << 20;

constexpr std::uint64_t page_of(std::uint64_t address) noexcept {
  return address & ~std::uint64_t{page_bytes - 1};
}

bool is_page_readable(std::uint64_t page) noexcept {
  return is_readable(reinterpret_cast<const void*>(page));
}

// True if the stack pointer lies below the top, and not farther away than `reach`.
bool lies_below(std::uint64_t stack_pointer, std::uint64_t top) noexcept {
  return stack_pointer < top && top - stack_pointer <= reach;
}

// True on the process's first thread. A forked child's first thread may run on the stack of another
// thread. Then the parent's bounds hold, or the stack is taken for a foreign one.
bool is_first_thread() noexcept { return syscall(SYS_gettid) == getpid(); }

constinit std::atomic<AskThreadStack> ask{nullptr};

// Writes the top of the thread's stack, and its floor to `stack`, for threads other than the first.
// Returns false if libc does not know them.
bool find_thread_stack(OwnStack& stack, std::uint64_t& top) noexcept {
  const AskThreadStack libc = ask.load(std::memory_order_relaxed);
  std::uint64_t low = 0, high = 0;
  stack.asked = true;
  if (libc == nullptr || !libc(low, high) || low >= high) return false;
  const auto control_block = reinterpret_cast<std::uint64_t>(__builtin_thread_pointer());
  top = control_block > low && control_block < high ? control_block : high;
  stack.floor = low;
  return true;
}

// Starts the known part of the stack at its top: empty at first.
void begin_at(OwnStack& stack, std::uint64_t top) noexcept {
  // A signal handler in between finds no top, or the whole state.
  stack.top = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  stack.low = page_of(top);
  stack.barrier = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  stack.top = top;
}

// Chooses the top that the stack pointer can belong to. Returns false if the thread's own stack
// does not contain it.
bool choose_top(OwnStack& stack, std::uint64_t stack_pointer) noexcept {
  if (stack.top != 0 && (stack.confirmed || lies_below(stack_pointer, stack.top)))
    return lies_below(stack_pointer, stack.top);
  if (stack.asked || is_confined()) return false;
  const ErrnoGuard keep;
  auto top = reinterpret_cast<std::uint64_t>(__libc_stack_end);
  if (is_first_thread()) {
    if (!lies_below(stack_pointer, top)) return false;
    begin_at(stack, top);
    return true;
  }
  // The bounds are kept in any case. This may be a foreign stack, and the thread's own stack is met
  // later.
  if (!find_thread_stack(stack, top)) return false;
  begin_at(stack, top);
  return lies_below(stack_pointer, top);
}

// Does the work of extend_to() if the kernel must not be asked. Only the stack lies so near to its
// known part.
bool extend_unasked(OwnStack& stack, std::uint64_t stack_pointer) noexcept {
  constexpr std::uint64_t near = std::uint64_t{1} << 20;
  if (stack_pointer + near < stack.low) return false;
  stack.low = std::min(stack.low, page_of(stack_pointer));
  stack.confirmed = true;
  return true;
}

// Extends the known part of the thread's stack down to the stack pointer. Returns false if a page
// in between cannot be read.
bool extend_to(OwnStack& stack, std::uint64_t stack_pointer) noexcept {
  if (stack_pointer < stack.floor) return false;
  if (stack_pointer < stack.barrier) {
    // The stack of the process's first thread may have grown over the barrier.
    if (!is_page_readable(stack.barrier)) return false;
    stack.barrier = 0;
  }
  if (is_probing_forbidden()) return extend_unasked(stack, stack_pointer);
  for (const std::uint64_t lowest = page_of(stack_pointer); stack.low > lowest;) {
    const std::uint64_t next = stack.low - page_bytes;
    if (next < page_of(stack.floor) || !is_page_readable(next)) {
      stack.barrier = next;
      return false;
    }
    stack.low = next;
  }
  stack.confirmed = true;
  return true;
}

}  // namespace

void ask_thread_stacks(AskThreadStack libc) noexcept { ask.store(libc, std::memory_order_relaxed); }

void ask_no_more() noexcept { own_stack.asked = true; }

std::uint64_t room_below(std::uint64_t stack_pointer) noexcept {
  if (is_confined()) return 0;
  const ErrnoGuard keep;
  std::uint64_t low = 0, top = 0;
  if (is_first_thread()) {
    rlimit limit{};
    if (getrlimit(RLIMIT_STACK, &limit) != 0) return 0;
    top = reinterpret_cast<std::uint64_t>(__libc_stack_end);
    low = top - std::min<std::uint64_t>(limit.rlim_cur, reach);
  } else if (own_stack.confirmed && own_stack.floor != 0) {
    low = own_stack.floor;
    top = own_stack.top;
  }
  return low <= stack_pointer && stack_pointer < top ? stack_pointer - low : 0;
}

Region find_region_of_stack_pointer(std::uint64_t stack_pointer) noexcept {
  OwnStack& stack = own_stack;
  if (choose_top(stack, stack_pointer) && extend_to(stack, stack_pointer)) return known_own_stack();
  // The page that a thread runs on can be read.
  if (is_probing_forbidden())
    return region_between(page_of(stack_pointer), page_of(stack_pointer) + page_bytes, false);
  return region_of(stack_pointer);
}

Region region_of(std::uint64_t address) noexcept {
  const Region own = known_own_stack();
  if (own.holds(address)) return own;
  // At an address that is not aligned, eight bytes might reach into a page that was not asked
  // about.
  if (address % sizeof(std::uint64_t) != 0 || !is_page_readable(page_of(address))) return {};
  return region_between(page_of(address), page_of(address) + page_bytes, false);
}

}  // namespace cuwarden::stacks
