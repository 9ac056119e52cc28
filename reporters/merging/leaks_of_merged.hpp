// The leaks of a merged report in the form of a report about one process, so that comparisons,
// checks and exports of leaks take both.
#pragma once

#include "reporters/model/merged_report.hpp"
#include "reporters/model/report.hpp"

namespace cuwarden {

// Returns a report whose leaks are those of all processes together, and which has the merged
// report's stacks, frames, modules and settings. Its field `records` has the reasons why leaks may
// be missing. The program is that of the processes, null if they ran several. The table
// `pointer_search` is null if the memory of a process with leaks was not searched. Devices,
// incidents and all other tables are empty.
model::Report leaks_of_merged(const model::MergedReport&);

}  // namespace cuwarden
