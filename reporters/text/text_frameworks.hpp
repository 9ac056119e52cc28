// The section of the text report about frameworks, which hand out memory themselves.
#pragma once

#include <string>

#include "reporters/text/elements/text_elements.hpp"

namespace cuwarden {

// Adds a section to `text` about frameworks (such as PyTorch) that take memory from CUDA and hand
// it out themselves: how much they have taken, and by their own figures, how much of it is in use.
// Adds nothing if there are none.
void add_frameworks(const IndexedReport&, const Style&, std::string& text);

}  // namespace cuwarden
