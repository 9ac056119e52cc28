// The part of the text report about requests that were refused for lack of memory.
#pragma once

#include <string>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/text_elements.hpp"

namespace cuwarden {

// Adds a section to `text` about the report's refused requests: their causes, proofs and advice,
// the attempts to serve them, and the holders of memory at those moments. `of_headline`: incident
// of which the report's headline has the cause and the advice already; null: none.
void add_incidents(const IndexedReport&, model::MaybeId of_headline, const Style&,
                   std::string& text);

}  // namespace cuwarden
