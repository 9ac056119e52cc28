// A report may have to be written on a signal handler's few kilobytes, or on a fibre: it gets a
// stack of its own.
#pragma once

namespace cuwarden::shim {

// Calls work(argument) on a fresh stack of 1 MiB with a guard page below, or on the caller's where
// there is no memory.
void call_on_own_stack(void (*work)(void*), void* argument) noexcept;

}  // namespace cuwarden::shim
