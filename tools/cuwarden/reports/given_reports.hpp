// Reads the reports that a person named on a command line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reporters/model/indexed_report.hpp"
#include "reporters/model/merged_report.hpp"
#include "reporters/reports/report_copy.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "tools/cuwarden/reports/report_names.hpp"

namespace cuwarden {

// Parses the JSON of a report. If it is no valid report, returns null and sets `error` to one line
// for the user, with the name. Shows a line of progress if parsing takes long. `name`: name of the
// file for messages.
std::optional<model::Report> parse_with_progress(std::string_view content, const std::string& name,
                                                 std::string& error);

// Parses the JSON of a merged report. If it is no valid merged report, returns null and sets
// `error` to one line for the user, with the name. Shows a line of progress if parsing takes long.
// `name`: name of the file for messages.
std::optional<model::MergedReport> parse_merged_with_progress(std::string_view content,
                                                              const std::string& name,
                                                              std::string& error);

// Reads and parses the report file at `path`; "-" is standard input. If that fails, returns null
// and sets `error` to one line for the user. Shows a line of progress if parsing takes long.
std::optional<model::Report> load_with_progress(const std::string& path, std::string& error);

// Reads the report file at `path`, to be changed and written again; "-" is standard input. If that
// fails, returns null and sets `error` to one line for the user. Shows a line of progress if
// parsing takes long.
std::optional<ReportCopy> load_copy_with_progress(const std::string& path, std::string& error);

// The outcome of reading reports.
struct GivenReports {
  std::size_t count = 0;  // number of reports that were read
  // True if a report or a folder could not be read, or a report was refused. Also true if a folder
  // has neither reports nor ledgers.
  bool failed = false;
  // Line for the user about processes with a ledger but no report, in the last folder that has
  // some; empty: there are none.
  std::string ledgers;
};

// Options that need the report of a single process. A merged report is refused if the user has
// given one of them.
struct OptionsForReports {
  // True if the user has given the option --module, --suppressions or --symbols.
  bool module = false, suppressions = false, symbols = false;
  // True if the output has tables that a merged report lacks, such as `totals`.
  bool tables = false;
  // Returns the error line that refuses the merged report at `path` and names the option; null if
  // no option was given.
  std::optional<std::string> refusal(const std::string& path) const;
};

// Reads the reports at the paths, and calls `visit` with the path and the content of each.
// - `paths`: files, "-" for standard input, or folders. A folder stands for the reports in it and
//   below it; merged reports there do not count. If these are several reports of one process, the
//   latest one that can be read counts (ReportsByProcess), and a line names the others.
// - `ReportNames`: completes names of functions and lines.
// - `patterns`: suppress leaks, in addition to the suppressions of each report.
// - `OptionsForReports`: a merged report at a path is a failure if one of these is given.
//   Otherwise, `visit` gets it as leaks_of_merged().
// - `goes_on`: is called before each report, which is not read if the result is false.
// Prints an error line for each failure, such as a folder without reports, and a line about ledgers
// in the folders.
GivenReports each_given_report(
    const std::vector<std::string>& paths, ReportNames&, const std::vector<std::string>& patterns,
    const OptionsForReports&,
    FunctionRef<void(const std::string& path, const IndexedReport&)> visit,
    FunctionRef<bool()> goes_on = [] { return true; });

}  // namespace cuwarden
