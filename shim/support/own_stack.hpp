// Larger work gets a stack of its own, such as the start of recording, a report, or the explanation
// of an incident. A signal handler, a coroutine or a thread of 16 KiB may not have enough left.
#pragma once

namespace cuwarden::shim {

// Calls work(argument) on a separate stack of 1 MiB, and returns true. If there is no memory for a
// new stack, uses the one that reserve_own_stack() made. Returns false if that stack is in use,
// too, or was never made; then `work` was not called. If the thread runs on an alternate signal
// stack, its signals are blocked while `work` runs.
bool call_on_own_stack(void (*work)(void*), void* argument) noexcept;

// Returns true if work(argument) can be called on the present stack: the thread's own stack has at
// least 1088 KiB (1 MiB and a guard) below the stack pointer, and the thread runs on no alternate
// signal stack. Returns false if the stack's lower end is not known. A coroutine's stack that is a
// local array of the thread's stack is not recognised as another stack. Returns false, too, in a
// thread that a seccomp filter of the program confines, since the thread must not ask the kernel.
bool has_room_here() noexcept;
// Calls work(argument), and returns true: on the present stack if has_room_here(), otherwise on a
// separate stack of 1 MiB. Returns false if there is no memory for a separate stack; then `work`
// was not called. For work that needs less than 8 KiB of stack and runs often. On the present
// stack, a garbage collector may stop the thread and look at its frames.
bool call_on_own_stack_if_small(void (*work)(void*), void* argument) noexcept;

// Makes the stack that call_on_own_stack() uses when there is no memory for a new one; later calls
// do nothing. To be called when recording starts.
void reserve_own_stack() noexcept;

// Marks the stack that reserve_own_stack() made as unused in a forked child, which has none of the
// threads that were using it. To be called in the child before recording starts.
void own_stacks_in_fork() noexcept;

}  // namespace cuwarden::shim
