// The part of the text report about requests that were refused for lack of memory.
#pragma once

#include <string>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/text_elements.hpp"

namespace cuwarden {

// Adds lines to `text` about the incident: the first says what happened to its requests; the
// others, which are indented, name the cause, what to do, what proves the cause, and what was
// attempted. `is_headline`: true if the report's headline is about the incident, so that the lines
// have the proof and the attempts alone.
void add_incident_words(const IndexedReport&, const model::Incident&, bool is_headline,
                        const Style&, std::string& text);

// Adds a section to `text` about the report's refused requests: their causes, proofs and advice,
// the attempts to serve them, and the holders of memory at those moments. `of_headline`: incident
// of which the report's headline has the cause and the advice already; null: none.
void add_incidents(const IndexedReport&, model::MaybeId of_headline, const Style&,
                   std::string& text);

}  // namespace cuwarden
