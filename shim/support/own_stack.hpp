// Larger work gets a stack of its own, such as the start of recording, a report, or the explanation
// of an incident. A signal handler, a coroutine or a thread of 16 KiB may not have enough left.
#pragma once

#include <cstddef>

namespace cuwarden::shim {

// Size in bytes of the stack on which call_on_own_stack() calls, with the guard page.
inline constexpr std::size_t own_stack_bytes = std::size_t{1} << 20;

// Calls work(argument) on another stack of 1 MiB with a guard page below: a fresh one, or the
// reserved one if there is no memory. Returns false if that one is in use, or was not made; then
// `work` was not called. Handlers of signals that come meanwhile run at the end.
bool call_on_own_stack(void (*work)(void*), void* argument) noexcept;

// Makes a stack for call_on_own_stack() at moments without memory. To be called at the start of
// recording.
void reserve_own_stack() noexcept;

}  // namespace cuwarden::shim
