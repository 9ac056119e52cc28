// The start and the end of a recording may fall on a signal handler's few kilobytes, on a fibre or
// on a thread of 16 KiB: they get a stack of their own.
#pragma once

namespace cuwarden::shim {

// Calls work(argument) on a fresh stack of 1 MiB with a guard page below; on the caller's stack if
// there is no memory for one.
void call_on_own_stack(void (*work)(void*), void* argument) noexcept;

// Makes a stack for call_on_own_stack_only() at moments without memory. To be called at the start
// of recording.
void reserve_own_stack() noexcept;
// Calls work(argument) on a fresh stack, or on the reserved one if there is no memory; never on the
// caller's. Returns false if neither could be had, and `work` was not called.
bool call_on_own_stack_only(void (*work)(void*), void* argument) noexcept;

}  // namespace cuwarden::shim
