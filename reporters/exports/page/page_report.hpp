// The tables of one report in the form that the page reads: a list for each column, times in
// microseconds since the process's start, and stacks as numbers in the tables of the page.
#pragma once

#include <string>

#include "reporters/exports/page/page_stacks.hpp"
#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// Returns the JSON of the object about the report. Adds its stacks to those of the page. `path`:
// path of the report's file. `stacks`: numbers of this report's stacks.
std::string page_report(const IndexedReport&, const std::string& path, StacksOfReport& stacks);

}  // namespace cuwarden
