// Messages that are shown with CUWARDEN_LOG=debug. They help a user to find out why nothing is
// recorded.
#pragma once

#include <string>
#include <string_view>

#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Writes debug lines at the first CUDA call: the path of the driver (libcuda), the function that
// was called, the thread, and the paths of ledger and report. `ledger`: path of the ledger's file;
// empty if the ledger is in memory. `report`: path of the report. Writes nothing if the settings do
// not ask for debug messages.
void say_what_recording_begins_with(const Settings&, std::string_view ledger,
                                    const std::string& report);

// True if the environment variable CUWARDEN_LOG asks for debug messages. Can be called before
// read_settings(), and in a process without a CUDA call.
bool is_debug_wanted() noexcept;
// Writes a debug line at the end of a process without a recorded CUDA call: either no libcuda is
// loaded, or one is loaded but the shim saw no call to it.
void say_why_nothing_was_recorded();

}  // namespace cuwarden::shim
