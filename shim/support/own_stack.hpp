// The start and the end of a recording need more stack than a signal handler, a fibre or a thread
// of 16 KiB may have left. There the work gets a stack of its own.
//
// Elsewhere the work stays on the thread's stack: a garbage collector that stops the thread by a
// signal looks at all memory from the stack pointer to the stack's upper end.
#pragma once

namespace cuwarden::shim {

// Calls work(argument) with 1 MiB of stack: on the thread's own stack if so much is left there,
// else on a fresh stack with a guard page below. Without memory for a fresh stack, `work` has to do
// with what is left. A thread that runs on an alternate signal stack gets no signal meanwhile.
void call_on_own_stack(void (*work)(void*), void* argument) noexcept;

// Makes a stack for call_on_own_stack_only() at moments without memory. To be called at the start
// of recording.
void reserve_own_stack() noexcept;
// As call_on_own_stack(), but uses the reserved stack if there is no memory for a fresh one.
// Returns false if that one is in use, too; then `work` was not called.
bool call_on_own_stack_only(void (*work)(void*), void* argument) noexcept;

}  // namespace cuwarden::shim
