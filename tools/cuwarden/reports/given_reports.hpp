// Reads the reports that a person named on a command line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reporters/model/indexed_report.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "tools/cuwarden/reports/report_names.hpp"

namespace cuwarden {

// Returns the report, or null with `error` set, as parse_report() does. Shows a line of progress
// if that takes long. `name`: name of the file for messages.
std::optional<model::Report> parse_with_progress(std::string_view content, const std::string& name,
                                                 std::string& error);

// The outcome of reading reports.
struct GivenReports {
  std::size_t count = 0;  // number of reports that were read
  bool failed = false;    // true if a report could not be read, or a folder has none
  std::string ledgers;    // line about processes with a ledger but no report; empty: there are none
};

// Options that need a process's own report: a merged report is refused if one of them is given.
// True: the user gave the option.
struct OptionsForReports {
  bool module = false, suppressions = false, symbols = false;
  bool tables =
      false;  // true if the output has tables that a merged report lacks, such as `totals`
  // Returns null if none was given; otherwise a line that names the merged report and the option.
  std::optional<std::string> refusal(const std::string& path) const;
};

// Reads the reports at the paths, and those in the folders at the paths and in the folders below
// them, and calls `visit` with the path and content of each. Of several reports of one process in
// the folders, that of the latest moment that can be read counts (ReportsByProcess), and a line
// names the others. Completes names
// of functions and lines, and suppresses leaks by the patterns. A merged report at a path is given
// to `visit` as leaks_of_merged(); it is a failure if one of the options is given. "-" is
// standard input. `goes_on`: is called before each report; if it returns false, no further report
// is read. Prints a line for each failure, such as a folder without reports, and about ledgers in
// the folders.
GivenReports each_given_report(
    const std::vector<std::string>& paths, ReportNames&, const std::vector<std::string>& patterns,
    const OptionsForReports&,
    FunctionRef<void(const std::string& path, const IndexedReport&)> visit,
    FunctionRef<bool()> goes_on = [] { return true; });

}  // namespace cuwarden
