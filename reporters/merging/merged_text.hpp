// The merged report for people: one view over many processes.
#pragma once

#include <cstddef>
#include <string>

#include "reporters/model/merged_report.hpp"
#include "reporters/text/elements/text_elements.hpp"

namespace cuwarden {

// Returns the device's UUID; if it is unknown, a name such as "GPU 0 of node7". The text is
// printable.
std::string device_name(const model::MergedDevice&);

// Returns the text of a merged report: sections with an empty line between two. The first section
// is about the process that ran out of memory first, and about devices that are idle while others
// are shared. Then come a line for each process, the name of the report to read first, and a line
// for each device. The last two sections list the leaks that several processes have, and the named
// steps that leak. A section without content is left out. `top`: most rows that the last two
// sections show; 0: all. The ids in the report must be valid.
std::string merged_text(const model::MergedReport&, std::size_t top, const Style&);

}  // namespace cuwarden
