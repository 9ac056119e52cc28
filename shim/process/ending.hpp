// The moments at which libc tells that the process ends; the exports beside them are in ending.cpp.
#pragma once

namespace cuwarden::shim {

// Has Process::exit_begins() called before the exit handlers that exist now. To be called once,
// when the driver has registered its own.
void expect_exit() noexcept;

}  // namespace cuwarden::shim
