// Reads the reports that a person named on a command line.
#pragma once

#include <string>

#include "reporters/model/indexed_report.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "tools/cuwarden/reports/report_names.hpp"

namespace cuwarden {

// Calls `visit` with the path and the content of the report at the path, or of each report in the
// folder at the path and in the folders below it. Completes names of functions and lines. `path`:
// "-" is standard input. Returns the number of reports; prints an error line, and sets `failed` to
// true, for each that cannot be read, and for a folder without reports.
std::size_t each_given_report(
    const std::string& path, ReportNames&,
    FunctionRef<void(const std::string& path, const IndexedReport&)> visit, bool& failed);

}  // namespace cuwarden
