#include "runtime_hooks/stacks/stack_bounds.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/core/readable.hpp"

// The loader's: the stack pointer with which the process began.
extern "C" void* __libc_stack_end;

namespace cuwarden::stacks {

constinit thread_local OwnStack own_stack;

namespace {

// A stack pointer further below is not searched for.
constexpr std::uint64_t reach = std::uint64_t{64} << 20;

constexpr std::uint64_t page_of(std::uint64_t address) noexcept {
  return address & ~std::uint64_t{page_bytes - 1};
}

bool is_page_readable(std::uint64_t page) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): asked of the kernel, not read
  return is_readable(reinterpret_cast<const void*>(page));
}

bool lies_below(std::uint64_t stack_pointer, std::uint64_t top) noexcept {
  return stack_pointer < top && top - stack_pointer <= reach;
}

// A forked child's first thread may be on the stack of another; then what its parent knew holds, or
// the stack is taken for a foreign one.
bool is_first_thread() noexcept { return syscall(SYS_gettid) == getpid(); }

constinit std::atomic<AskThreadStack> ask{nullptr};

// Where a thread's stack lies, other than the first one's.
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

void begin_at(OwnStack& stack, std::uint64_t top) noexcept {
  // A signal handler in between finds no top, or all of it.
  stack.top = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  stack.low = page_of(top);
  stack.barrier = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  stack.top = top;
}

// Which top this stack pointer can belong to.
bool choose_top(OwnStack& stack, std::uint64_t stack_pointer) noexcept {
  if (stack.top != 0 && (stack.confirmed || lies_below(stack_pointer, stack.top)))
    return lies_below(stack_pointer, stack.top);
  if (stack.asked) return false;
  const ErrnoGuard keep;
  auto top = reinterpret_cast<std::uint64_t>(__libc_stack_end);
  if (is_first_thread()) {
    if (!lies_below(stack_pointer, top)) return false;
    begin_at(stack, top);
    return true;
  }
  // Kept in any case: this may be a foreign stack, and the thread's own is met later.
  if (!find_thread_stack(stack, top)) return false;
  begin_at(stack, top);
  return lies_below(stack_pointer, top);
}

// Extends what is known of the thread's stack down to this stack pointer.
bool extend_to(OwnStack& stack, std::uint64_t stack_pointer) noexcept {
  if (stack_pointer < stack.floor) return false;
  if (stack_pointer < stack.barrier) {
    // The first thread's stack may have grown over it.
    if (!is_page_readable(stack.barrier)) return false;
    stack.barrier = 0;
  }
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

Region find_region_of_stack_pointer(std::uint64_t stack_pointer) noexcept {
  OwnStack& stack = own_stack;
  if (choose_top(stack, stack_pointer) && extend_to(stack, stack_pointer)) return known_own_stack();
  return region_of(stack_pointer);
}

Region region_of(std::uint64_t address) noexcept {
  const Region own = known_own_stack();
  if (own.holds(address)) return own;
  // Not aligned, eight bytes might reach into a page that was not asked about.
  if (address % sizeof(std::uint64_t) != 0 || !is_page_readable(page_of(address))) return {};
  return region_between(page_of(address), page_of(address) + page_bytes, false);
}

}  // namespace cuwarden::stacks
