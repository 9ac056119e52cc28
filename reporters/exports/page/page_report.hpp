// The tables of one report in the form that the page reads: a list for each column, and stacks as
// numbers in the tables of the page. Times are in microseconds since the process's start, those of
// the table `groups` in milliseconds.
#pragma once

#include <cstddef>
#include <string>

#include "reporters/exports/page/page_stacks.hpp"
#include "reporters/model/indexed_report.hpp"
#include "reporters/model/row_progress.hpp"

namespace cuwarden {

// Returns the report as a JSON object that the page reads. `path`: path of the report's file.
// `stacks`: adds the report's stacks to the tables of the page, and gives their numbers. `told`: is
// called now and then with the progress: number of rows that were passed over so far, and of all.
std::string page_report(
    const IndexedReport&, const std::string& path, StacksOfReport& stacks,
    Told told = [](std::size_t, std::size_t) {});

}  // namespace cuwarden
