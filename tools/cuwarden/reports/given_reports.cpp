#include "tools/cuwarden/reports/given_reports.hpp"

#include <utility>

#include "reporters/files/file_status.hpp"
#include "reporters/json/read_report.hpp"
#include "reporters/words/error_text.hpp"
#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/reports/given_suppressions.hpp"
#include "tools/cuwarden/reports/report_folder.hpp"

namespace cuwarden {

GivenReports each_given_report(
    const std::string& path, ReportNames& names, const std::vector<std::string>& patterns,
    FunctionRef<void(const std::string& path, const IndexedReport&)> visit) {
  GivenReports given;
  const auto fail = [&](const std::string& line) {
    print_error(line);
    given.failed = true;
  };
  const auto read = [&](const std::string& file) {
    std::string error;
    auto report = load_report(file, error);
    if (!report) return fail(error);
    names.complete(*report, names.paths_in(file));
    suppress_leaks(*report, patterns);
    visit(file, IndexedReport(std::move(*report)));
    ++given.count;
  };
  if (path == "-" || !is_folder(path)) {
    if (path != "-" && is_ledger(path))
      fail(path + ": it is a ledger; `cuwarden report` with it makes its report");
    else
      read(path);
    return given;
  }
  const FolderContents contents = contents_of(path);
  if (contents.error != 0) fail(path + ": " + error_text(contents.error));
  for (const std::string& line : contents.unreadable) fail(line);
  for (const std::string& file : contents.reports) read(file);
  if (!contents.ledgers.empty()) {
    given.ledgers = line_about_ledgers(path, contents);
    print_error(given.ledgers + "; `cuwarden recover` with this folder makes those of killed ones");
  } else if (contents.error == 0 && contents.reports.empty()) {
    fail(path + ": it is a folder without reports; give the folder of CUWARDEN_REPORT");
  }
  return given;
}

}  // namespace cuwarden
