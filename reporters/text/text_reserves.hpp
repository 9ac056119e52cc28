// The section of the text report about memory that libraries keep for themselves.
#pragma once

#include <string>

#include "reporters/text/elements/text_elements.hpp"

namespace cuwarden {

// Adds a section to `text` about reserves of libraries (memory that a library keeps for itself):
// the live bytes of the largest ones, and the calls by which the program gets them back. Adds
// nothing if the report has none.
void add_library_reserves(const IndexedReport&, const Style&, std::string& text);

}  // namespace cuwarden
