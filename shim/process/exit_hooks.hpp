// Registers the shim's handler for exit(). The shim's exported exit(), _exit() and abort() are in
// exit_hooks.cpp.
#pragma once

namespace cuwarden::shim {

// Registers an exit handler that calls Process::exit_begins(), which writes a report and reads the
// devices. libc runs it before all handlers that are registered already, among them the driver's,
// so that the driver still answers. Also registers handlers in which other threads that call exit()
// wait until that work is done. To be called once, after the driver has registered its own
// handlers.
void expect_exit() noexcept;

}  // namespace cuwarden::shim
