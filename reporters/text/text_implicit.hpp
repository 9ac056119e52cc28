// Section of the text report about contexts, code, memory for kernels, streams and executable
// graphs, for which the driver takes device memory without being asked for memory.
#pragma once

#include <string>

#include "reporters/text/text_elements.hpp"

namespace cuwarden {

// Adds a section to `text` that lists the call stacks whose contexts, code, memory for kernels,
// streams or executable graphs take most device memory. Adds nothing if they take less than 1 MiB
// together.
void add_implicit(const IndexedReport&, const Style&, std::string& text);

}  // namespace cuwarden
