// Reads the reports that a person named on a command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reporters/model/indexed_report.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "tools/cuwarden/reports/report_names.hpp"

namespace cuwarden {

// The outcome of reading reports.
struct GivenReports {
  std::size_t count = 0;  // number of reports that were read
  bool failed = false;    // true if a report could not be read, or a folder has none
  std::string ledgers;    // line about processes with a ledger but no report; empty: there are none
};

// Options that change the leaks of a report, and have no effect on those of a merged report. True:
// the user gave the option.
struct OptionsForReports {
  bool module = false, suppressions = false, symbols = false;
  bool tables = false;  // true if the output has all tables of each report, as the format jsonl has
  // Returns null if none was given; otherwise a line that names the merged report and the option.
  std::optional<std::string> refusal(const std::string& path) const;
};

// Calls `visit` with the path and the content of the report at the path, or of each report in the
// folder at the path and in the folders below it. Completes names of functions and lines, and
// suppresses leaks by the patterns. For a merged report at the path, calls it with
// leaks_of_merged(), unless one of the options was given. `path`: "-" is standard input. Prints an
// error line for each report that cannot be read, for a folder without reports, and about ledgers
// in the folder. `goes_on`: asked before each report; if it returns false, no further report is
// read.
GivenReports each_given_report(
    const std::string& path, ReportNames&, const std::vector<std::string>& patterns,
    const OptionsForReports&,
    FunctionRef<void(const std::string& path, const IndexedReport&)> visit,
    FunctionRef<bool()> goes_on = [] { return true; });

}  // namespace cuwarden
