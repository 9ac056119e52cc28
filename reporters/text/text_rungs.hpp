// The lines of the text report about cuwarden's attempts (rungs) to serve a refused request.
#pragma once

#include <string>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/text_elements.hpp"

namespace cuwarden {

// Adds a line to `text` about the rungs (attempts to serve a refused request) that were tried for
// the incident's first request, and a line about the rungs that were not tried, with the reasons.
// Adds nothing if the report has no rows about the incident's rungs.
void add_rungs(const IndexedReport&, const model::Incident&, const Style&, std::string& text);

}  // namespace cuwarden
