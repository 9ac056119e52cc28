// Messages of CUWARDEN_LOG=debug. They answer why nothing is recorded.
#pragma once

#include <string>
#include <string_view>

#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Says, at the first CUDA call, which driver is recorded, which call came first, and where ledger
// and report are. `ledger`: its path.
void say_what_recording_begins_with(const Settings&, std::string_view ledger,
                                    const std::string& report);

// True if CUWARDEN_LOG asks for debug messages. Reads the environment alone, so it can be called
// before the settings were read.
bool is_debug_wanted() noexcept;
// Says, at the end of a process without a recorded CUDA call, why nothing was recorded.
void say_why_nothing_was_recorded();

}  // namespace cuwarden::shim
