// The part of the text report about requests that were refused for lack of memory.
#pragma once

#include <string>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/text_elements.hpp"

namespace cuwarden {

// Adds lines to `text` about the incident: the first says what happened to its requests and why;
// the others, which are indented, say what to do, what proves the cause, and what was attempted.
void add_incident_words(const IndexedReport&, const model::Incident&, const Style&,
                        std::string& text);

// Adds a section to `text` about the report's refused requests: their causes, proofs and advice,
// the attempts to serve them, and the holders of memory at those moments.
void add_incidents(const IndexedReport&, const Style&, std::string& text);

}  // namespace cuwarden
