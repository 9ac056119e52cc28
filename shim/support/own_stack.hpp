// Larger work gets a stack of its own, such as the start of recording, a report, or the explanation
// of an incident. A signal handler, a coroutine or a thread of 16 KiB may not have enough left.
#pragma once

#include <cstddef>

namespace cuwarden::shim {

// Size in bytes of the stack on which call_on_own_stack() calls, with the guard page.
inline constexpr std::size_t own_stack_bytes = std::size_t{1} << 20;

// Calls work(argument) on a separate stack of 1 MiB with a guard page below it. If there is no
// memory for a new stack, uses the one that reserve_own_stack() made. Returns false if that stack
// is in use, too, or was never made; then `work` was not called. Signal handlers of the program run
// only after `work` has returned.
bool call_on_own_stack(void (*work)(void*), void* argument) noexcept;

// Makes the stack that call_on_own_stack() uses when there is no memory for a new one. To be called
// when recording starts.
void reserve_own_stack() noexcept;

}  // namespace cuwarden::shim
