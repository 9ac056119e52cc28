// Words about the state of a process in the live view of `cuwarden top`.
#pragma once

#include <string>

#include "tools/cuwarden/top/live/live_data.hpp"

namespace cuwarden {

// Returns words about the state of a process: "ended"; or that a request waits for memory, and how
// many requests were refused and rescued so far. Empty if there is nothing to say.
std::string state_text(const LiveProcess&);

}  // namespace cuwarden
