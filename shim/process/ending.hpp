// The moments at which libc tells that the process ends; the exports beside them are in ending.cpp.
#pragma once

namespace cuwarden::shim {

// Registers an exit handler that calls Process::exit_begins() before all exit handlers that exist
// now. To be called once, after the driver has registered its own handlers.
void expect_exit() noexcept;

}  // namespace cuwarden::shim
