// The sentences with which the page begins: what happened, and what to do.
#pragma once

#include <string>

#include "reporters/exports/page/page_stacks.hpp"
#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// Returns the JSON of a list of notices about the report, the most important one first. Each has a
// `tone` ("bad", "warning", "good", "plain"), a `title` (the sentence), `lines`, and if they are
// known the number of its `stack` in the page's table and of its `incident`.
std::string page_summary(const IndexedReport&, StacksOfReport&);

// Returns the end of the process in a few words, such as "exited with status 0 after 9.8 s".
std::string words_about_end(const IndexedReport&);

}  // namespace cuwarden
