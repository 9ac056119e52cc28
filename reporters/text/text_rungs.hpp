// The lines of the text report about cuwarden's attempts (rungs) to serve a refused request.
#pragma once

#include <string>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/elements/text_elements.hpp"

namespace cuwarden {

// Adds two lines to `text`: one about the rungs (attempts to serve a refused request) that were
// tried for the incident's first request, and one about those that were not tried, with the
// reasons. A line about which the report has no rows is left out.
void add_rungs(const IndexedReport&, const model::Incident&, const Style&, std::string& text);

}  // namespace cuwarden
