// Has the program's own Python interpreter tell when it is about to end. It then frees its objects,
// and the pointers to allocations in them.
#pragma once

namespace cuwarden::shim {

// Queues a call in the interpreter's main thread that registers a function with Python's module
// atexit. That function calls `ends`, and no code of Python runs for it. Functions that were
// registered later run before it. Does nothing if no interpreter runs in the process, or if a
// seccomp filter confines the calling thread. A forked child inherits the registration; `ends` is
// to be the same in all calls.
void expect_interpreters_end(void (*ends)() noexcept) noexcept;

}  // namespace cuwarden::shim
