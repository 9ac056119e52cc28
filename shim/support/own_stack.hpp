// Runs cuwarden's longer work on a stack of its own. The calling thread may have little stack left:
// in a signal handler, in a fibre, or in a thread with a stack of 16 KiB.
#pragma once

namespace cuwarden::shim {

// Calls work(argument) in the calling thread, on a new stack of 1 MiB with a guard page below. If
// there is no memory for a stack, calls it on the caller's stack. In a thread that a seccomp filter
// confines the new stack has no guard page.
void call_on_own_stack(void (*work)(void*), void* argument) noexcept;

// Allocates one spare stack, which call_on_own_stack_only() uses if there is no memory for a new
// one. To be called when recording starts, and again in a forked child.
void reserve_own_stack() noexcept;
// Calls work(argument) in the calling thread, on a new stack of 1 MiB, or on the spare stack of
// reserve_own_stack() if there is no memory for a new one. Never uses the caller's stack. Returns
// false, without calling `work`, if there is no memory and the spare stack is in use or was not
// made.
bool call_on_own_stack_only(void (*work)(void*), void* argument) noexcept;

}  // namespace cuwarden::shim
