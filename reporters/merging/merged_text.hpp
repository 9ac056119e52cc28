// The merged report for people: one view over many processes.
#pragma once

#include <cstddef>
#include <string>

#include "reporters/model/merged_report.hpp"
#include "reporters/text/text_elements.hpp"

namespace cuwarden {

// Returns the device's UUID, or a name such as "GPU 0 of node7" if that is unknown; printable.
std::string device_name(const model::MergedDevice&);

// Returns the text of a merged report whose ids are valid: sections with an empty line between two.
// First comes the process that ran out of memory first, if there is one, and devices that are idle
// while others are shared. A line for each process and for each device follow, then the leaks that
// several processes have. `top`: most leaks that are shown; 0: all. Empty if there is no process.
std::string merged_text(const model::MergedReport&, std::size_t top, const Style&);

}  // namespace cuwarden
