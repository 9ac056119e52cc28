#include "shim/support/own_stack.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>

#include "runtime_hooks/core/confinement.hpp"

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

constexpr std::size_t bytes = std::size_t{1} << 20, guard = 4096;

// Null where there is no memory. Its lowest page stays without access: too deep a call is a fault
// there, not a write into what happens to be mapped below. A confined thread has to do without
// that: it asks for nothing but the memory.
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

}  // namespace

void call_on_own_stack(void (*work)(void*), void* argument) noexcept {
  void* const stack = make_stack();
  if (stack == nullptr) return work(argument);
  cuwarden_call_on(argument, work, static_cast<char*>(stack) + bytes);
  munmap(stack, bytes);
}

void reserve_own_stack() noexcept {
  if (spare == nullptr) spare = make_stack();
  spare_is_used.store(false);
}

bool call_on_own_stack_only(void (*work)(void*), void* argument) noexcept {
  if (void* const stack = make_stack()) {
    cuwarden_call_on(argument, work, static_cast<char*>(stack) + bytes);
    munmap(stack, bytes);
    return true;
  }
  if (spare == nullptr || spare_is_used.exchange(true)) return false;
  cuwarden_call_on(argument, work, static_cast<char*>(spare) + bytes);
  spare_is_used.store(false);
  return true;
}

}  // namespace cuwarden::shim
