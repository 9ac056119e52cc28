// The sentences with which the page begins: what happened, and what to do.
#pragma once

#include <string>

#include "reporters/exports/page/page_stacks.hpp"
#include "reporters/model/indexed_report.hpp"
#include "reporters/model/row_progress.hpp"

namespace cuwarden {

// Returns a JSON list of notices about the report, the most important one first. A notice is an
// object. `tone`: "bad", "warning", "good", "plain", or "leak" for a group of the leaks. `title`:
// the sentence. `lines`: further lines. `stack`: number of a call stack in the page's table; 0:
// none. `incident`: id of a refused request; null: none. `done`: is called for each row, at most
// passes_of_notices times as often as the table `leak_groups` has rows.
std::string page_notices(const IndexedReport&, StacksOfReport&, RowDone done);
inline constexpr std::size_t passes_of_notices = 8;

// Returns words for the end of the report's process, such as "exited with status 0 after 9.8 s".
std::string words_about_end(const IndexedReport&);

}  // namespace cuwarden
