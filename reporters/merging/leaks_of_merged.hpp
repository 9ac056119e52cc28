// Turns the leaks of a merged report into a report as of one process. Comparisons, checks and
// exports of leaks can then read both kinds of reports.
#pragma once

#include <string>
#include <vector>

#include "reporters/model/merged_report.hpp"
#include "reporters/model/report.hpp"

namespace cuwarden {

// Returns the reasons why the merged report may lack processes or leaks; empty: there is none. The
// reasons that concern single processes (MergedProcess::doubt) are not among them.
std::vector<std::string> doubts_about(const model::MergedReport&);

// Returns a report with the leaks, stacks, frames, modules and settings of the merged report. Each
// suppressed fingerprint is a row of `leak_groups` that is marked as suppressed and has no figures.
// The field `process.program` is the file name, without folders, of the program that all processes
// ran; null if it differs or is unknown. The field `records` has the reasons why leaks may be
// missing. `pointer_search` is null if the memory of at least one process with leaks was not
// searched for pointers. Otherwise it is present, but has no figures. `tool` is that of the merged
// report; all other tables are empty.
model::Report leaks_of_merged(const model::MergedReport&);

}  // namespace cuwarden
