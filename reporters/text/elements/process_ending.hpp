// The end of a process in words.
#pragma once

#include <string>

#include "reporters/model/values.hpp"

namespace cuwarden {

// Returns words for the end of a process, such as "exited with status 0" or "killed by signal 9
// (SIGKILL)". The parameters are the fields of model::Process with these names.
std::string process_ending(const model::Text& end_reason, const model::SignedFigure& exit_status,
                           const model::Figure& signal);

}  // namespace cuwarden
