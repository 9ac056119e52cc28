// Section of the text report about requests that were refused for lack of memory (incidents).
#pragma once

#include <string>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/elements/text_elements.hpp"
#include "reporters/text/text_report.hpp"

namespace cuwarden {

// Adds lines to `text` about the incident (a refused request). The first line says what happened to
// the request. Indented lines follow: the cause, what to do, what proves the cause, and what
// cuwarden attempted. `is_headline`: true if the report's headline is about this incident; then
// only the proof and the attempts are added.
void add_incident_words(const IndexedReport&, const model::Incident&, bool is_headline,
                        const Style&, std::string& text);

// Adds a section to `text` about the report's refused requests: their causes, proofs and advice,
// the attempts to serve them, and the call stacks that held most memory when they were refused.
// At most five incidents that failed are shown, besides that of the headline, and a line counts the
// others. Requests that were served when the program repeated them are only counted. `of_headline`:
// id of the incident whose cause and advice the report's headline has; null: none. A line counts
// the call stacks that are left out; the option `top` of 0 shows all.
void add_incidents(const IndexedReport&, model::MaybeId of_headline, const TextOptions&,
                   const Style&, std::string& text);

}  // namespace cuwarden
