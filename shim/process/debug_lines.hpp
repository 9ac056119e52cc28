// Messages of CUWARDEN_LOG=debug. They answer why nothing is recorded.
#pragma once

#include <string>
#include <string_view>

#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// At the first CUDA call: which driver and which call it was, and where the records go.
void say_what_recording_begins_with(const Settings&, std::string_view ledger,
                                    const std::string& report);

// By the environment alone, before the settings have been read.
bool is_debug_wanted() noexcept;
// At the end of a process in which there was no such call.
void say_why_nothing_was_recorded();

}  // namespace cuwarden::shim
