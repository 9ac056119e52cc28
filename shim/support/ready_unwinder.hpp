// The shim's own unwinder, which libgcc has linked into it.
#pragma once

namespace cuwarden::shim {

// Makes the shim's own unwinder ready, once for the process. An exception of the program, the
// cancellation of a thread or pthread_exit() may pass through a frame of the shim that has
// something to clean up. There the program's unwinder calls the shim's unwinder, which ends the
// process if it was never used before. So this function must be called first. Needs some kilobytes
// of stack. Does nothing in a thread that a seccomp filter confines, since it makes a system call
// (getpid). Keeps errno.
void make_unwinder_ready() noexcept;

}  // namespace cuwarden::shim
