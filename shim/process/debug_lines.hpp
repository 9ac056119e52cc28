// Messages that are shown with CUWARDEN_LOG=debug. They help a user to find out why nothing is
// recorded.
#pragma once

#include <string>
#include <string_view>

#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Writes debug lines at the first CUDA call: the path of the driver (libcuda), the name of the
// called function of the CUDA runtime, the kernel's id of the thread, and the paths of ledger and
// report. If the program called the driver itself, the line says so instead of a name. `ledger`:
// path of the ledger's file; empty if the ledger is in memory. `report`: path of the report. Writes
// nothing if the settings do not ask for debug messages. May throw std::bad_alloc.
void say_what_recording_begins_with(const Settings&, std::string_view ledger,
                                    const std::string& report);

// True if the environment variable CUWARDEN_LOG asks for debug messages. Reads the environment
// itself, for a process that has made no CUDA call and so has not read its settings.
bool is_debug_wanted() noexcept;
// Writes a debug line that says why nothing was recorded: either no libcuda is loaded, or one is
// loaded but the shim saw no call to it. To be called at the end of a process without a recorded
// CUDA call, after set_up_log(). May throw std::bad_alloc.
void say_why_nothing_was_recorded();

}  // namespace cuwarden::shim
