// The shim's own unwinder, which libgcc has linked into it.
#pragma once

namespace cuwarden::shim {

// Makes the shim's unwinder ready, once for the process. Must be called before an exception of the
// program, the cancellation of a thread or pthread_exit() can pass through a frame of the shim that
// has something to clean up. The program's unwinder calls the shim's there, which ends the process
// unless it was used before. Needs some kilobytes of stack. Asks the kernel for the process's pid,
// so a confined thread does nothing. Keeps errno.
void make_unwinder_ready() noexcept;

}  // namespace cuwarden::shim
