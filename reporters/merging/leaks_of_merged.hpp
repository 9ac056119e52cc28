// Turns the leaks of a merged report into a report of one process. Comparisons, checks and exports
// of leaks can then read either kind.
#pragma once

#include <string>
#include <vector>

#include "reporters/model/merged_report.hpp"
#include "reporters/model/report.hpp"

namespace cuwarden {

// Returns the reasons why the merged report may lack processes or leaks; empty: there is none. The
// doubts about single processes (MergedProcess::doubt) are not among them.
std::vector<std::string> doubts_about(const model::MergedReport&);

// Returns a report with the merged leaks, stacks, frames, modules and settings. Each suppressed
// fingerprint is a row of `leak_groups` that is marked as suppressed and has no figures. The field
// `process.program` is the file name of the program that all processes ran; null if they ran
// different ones. The field `records` has the reasons why leaks may be missing. `pointer_search` is
// null if the memory of a process with leaks was not searched. All other tables are empty.
model::Report leaks_of_merged(const model::MergedReport&);

}  // namespace cuwarden
