// The part of the text report about requests that were refused.
#pragma once

#include <string>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/text_elements.hpp"

namespace cuwarden {

void add_incidents(const IndexedReport&, const Paint&, std::string& text);

}  // namespace cuwarden
