#include "shim/support/own_stack.hpp"

#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/memory/own_memory.hpp"
#include "runtime_hooks/stacks/stack_bounds.hpp"
#include "shim/support/held_signals.hpp"

// Switches to `top`, calls work(argument), switches back. The frame is described to unwinders by
// rbp, so that an exception thrown and caught inside `work` finds its handler.
extern "C" void cuwarden_call_on(void* argument, void (*work)(void*), void* top);
__asm__(
    ".text\n"
    ".hidden cuwarden_call_on\n"
    ".globl cuwarden_call_on\n"
    ".type cuwarden_call_on, @function\n"
    "cuwarden_call_on:\n"
    ".cfi_startproc\n"
    "endbr64\n"
    "pushq %rbp\n"
    ".cfi_def_cfa_offset 16\n"
    ".cfi_offset rbp, -16\n"
    "movq %rsp, %rbp\n"
    ".cfi_def_cfa_register rbp\n"
    "movq %rdx, %rsp\n"
    "call *%rsi\n"
    "movq %rbp, %rsp\n"
    "popq %rbp\n"
    ".cfi_def_cfa rsp, 8\n"
    "ret\n"
    ".cfi_endproc\n"
    ".size cuwarden_call_on, .-cuwarden_call_on\n");

namespace cuwarden::shim {

namespace {

constexpr std::size_t stack_bytes = std::size_t{1} << 20, guard_bytes = 4096;

// Returns a stack; null if there is no memory. The lowest page has no access rights, so that too
// deep a call is a fault instead of a write into another mapping. A confined thread has no such
// page, since it makes no further system call.
void* make_stack() noexcept {
  const bool confined = is_confined();
  void* stack = mmap(nullptr, stack_bytes, confined ? PROT_READ | PROT_WRITE : PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (stack != MAP_FAILED && !confined &&
      mprotect(static_cast<char*>(stack) + guard_bytes, stack_bytes - guard_bytes,
               PROT_READ | PROT_WRITE) != 0) {
    munmap(stack, stack_bytes);
    stack = MAP_FAILED;
  }
  if (stack == MAP_FAILED) return nullptr;
  OwnMemory::add(stack, stack_bytes);
  return stack;
}

constinit void* spare = nullptr;
constinit std::atomic<bool> spare_is_used{false};

// Returns true if the thread runs on an alternate signal stack. Returns false in a confined thread,
// which must not ask the kernel.
bool is_on_signal_stack() noexcept {
  stack_t stack{};
  return !is_confined() && sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

// On an alternate signal stack, signals are held back: the kernel goes by the stack pointer, so the
// next handler would overwrite the frames of the present one. Elsewhere they are not held back. A
// signal for the process would then be handled in another thread, such as one of the driver's. A
// handler that jumps would take that thread to this one's stack.
void call_on(void* stack, void (*work)(void*), void* argument) noexcept {
  std::optional<HeldSignals> held;
  if (is_on_signal_stack()) held.emplace();
  cuwarden_call_on(argument, work, static_cast<char*>(stack) + stack_bytes);
}

}  // namespace

bool has_room_here() noexcept {
  // Bytes of a thread's guard, which older libraries count as part of the stack.
  constexpr std::size_t guard_of_thread = 64 << 10;
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  return !is_on_signal_stack() && stacks::room_below(here) >= stack_bytes + guard_of_thread;
}

bool call_on_own_stack_if_small(void (*work)(void*), void* argument) noexcept {
  if (!has_room_here()) return call_on_own_stack(work, argument);
  work(argument);
  return true;
}

void reserve_own_stack() noexcept {
  if (spare == nullptr) spare = make_stack();
}

void own_stacks_in_fork() noexcept { spare_is_used.store(false); }

bool call_on_own_stack(void (*work)(void*), void* argument) noexcept {
  if (void* const stack = make_stack()) {
    call_on(stack, work, argument);
    OwnMemory::remove(stack);
    munmap(stack, stack_bytes);
    return true;
  }
  if (spare == nullptr || spare_is_used.exchange(true)) return false;
  call_on(spare, work, argument);
  spare_is_used.store(false);
  return true;
}

}  // namespace cuwarden::shim
