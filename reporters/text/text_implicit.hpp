// Section of the text report about implicit memory: device memory that the driver takes, without
// being asked for memory, for contexts, modules, kernels, streams and executable graphs.
#pragma once

#include <string>

#include "reporters/text/elements/text_elements.hpp"

namespace cuwarden {

// Adds a section to `text` with up to four call stacks whose contexts, modules, kernels, streams or
// executable graphs take most device memory. Adds nothing if all of these take less than 1 MiB.
void add_implicit(const IndexedReport&, const Style&, std::string& text);

}  // namespace cuwarden
