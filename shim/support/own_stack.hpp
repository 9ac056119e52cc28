// The start and the end of a recording may fall on a signal handler's few kilobytes, on a fibre or
// on a thread of 16 KiB: they get a stack of their own.
#pragma once

namespace cuwarden::shim {

// Calls work(argument) on a fresh stack of 1 MiB with a guard page below, or on the caller's where
// there is no memory.
void call_on_own_stack(void (*work)(void*), void* argument) noexcept;

// At the start of recording: a stack for the moments in which there is no memory.
void reserve_own_stack() noexcept;
// On a fresh one or on that one, never on the caller's. False: nothing was called.
bool call_on_own_stack_only(void (*work)(void*), void* argument) noexcept;

}  // namespace cuwarden::shim
