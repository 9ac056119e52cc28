#include "shim/support/own_stack.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <optional>

#include "runtime_hooks/core/confinement.hpp"
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

constexpr std::size_t bytes = own_stack_bytes, guard = 4096;

// Returns a stack; null if there is no memory. The lowest page has no access rights, so that too
// deep a call is a fault instead of a write into another mapping. A confined thread has no such
// page, since it makes no further system call.
void* make_stack() noexcept {
  const bool confined = is_confined();
  void* stack = mmap(nullptr, bytes, confined ? PROT_READ | PROT_WRITE : PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (stack != MAP_FAILED && !confined &&
      mprotect(static_cast<char*>(stack) + guard, bytes - guard, PROT_READ | PROT_WRITE) != 0) {
    munmap(stack, bytes);
    stack = MAP_FAILED;
  }
  return stack == MAP_FAILED ? nullptr : stack;
}

constinit void* spare = nullptr;
constinit std::atomic<bool> spare_is_used{false};

// A handler could jump away from the stack. It could overwrite an alternate signal stack that the
// thread has left, since the kernel goes by the stack pointer. A garbage collector's looks for the
// thread's frames from the stack pointer on. A confined thread makes no system call, so it gets all
// signals. Signals without a handler are not held back, so that Ctrl-C still ends a program whose
// device hangs.
void call_on(void* stack, void (*work)(void*), void* argument) noexcept {
  std::optional<HeldSignals> held;
  if (!is_confined()) held.emplace(signals_with_handlers());
  cuwarden_call_on(argument, work, static_cast<char*>(stack) + bytes);
}

}  // namespace

void reserve_own_stack() noexcept {
  if (spare == nullptr) spare = make_stack();
  spare_is_used.store(false);
}

bool call_on_own_stack(void (*work)(void*), void* argument) noexcept {
  if (void* const stack = make_stack()) {
    call_on(stack, work, argument);
    munmap(stack, bytes);
    return true;
  }
  if (spare == nullptr || spare_is_used.exchange(true)) return false;
  call_on(spare, work, argument);
  spare_is_used.store(false);
  return true;
}

}  // namespace cuwarden::shim
