#include "tools/cuwarden/reports/given_reports.hpp"

#include <utility>

#include "reporters/files/file_status.hpp"
#include "reporters/json/read_report.hpp"
#include "reporters/merging/leaks_of_merged.hpp"
#include "reporters/merging/merged_json.hpp"
#include "reporters/words/error_text.hpp"
#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/progress.hpp"
#include "tools/cuwarden/reports/given_suppressions.hpp"
#include "tools/cuwarden/reports/report_folder.hpp"

namespace cuwarden {

std::optional<std::string> OptionsForReports::refusal(const std::string& path) const {
  const char* const option = module         ? "--module"
                             : suppressions ? "--suppressions"
                             : symbols      ? "--symbols"
                             : tables       ? "this format"
                                            : nullptr;
  if (option == nullptr) return std::nullopt;
  return path + ": it is a merged report, and " + option +
         " needs the reports themselves: give those";
}

GivenReports each_given_report(
    const std::string& path, ReportNames& names, const std::vector<std::string>& patterns,
    const OptionsForReports& options,
    FunctionRef<void(const std::string& path, const IndexedReport&)> visit,
    FunctionRef<bool()> goes_on) {
  GivenReports given;
  const auto fail = [&](const std::string& line) {
    print_error(line);
    given.failed = true;
  };
  const auto read = [&](const std::string& file) {
    if (!goes_on()) return;
    std::string error;
    const auto content = load_content(file, error);
    if (!content) return fail(error);
    const std::string name = name_of_input(file);
    if (is_merged_report(*content)) {
      if (const auto refusal = options.refusal(name)) return fail(*refusal);
      const auto merged = parse_merged_report(*content, name, error);
      if (!merged) return fail(error);
      visit(file, IndexedReport(leaks_of_merged(*merged)));
      ++given.count;
      return;
    }
    auto report = parse_report(*content, name, error);
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
  Progress progress("reading reports", contents.reports.size());
  for (std::size_t i = 0; i < contents.reports.size(); ++i) {
    progress.done(i);
    read(contents.reports[i]);
  }
  if (!contents.ledgers.empty()) {
    given.ledgers = line_about_ledgers(path, contents);
    print_error(given.ledgers + "; `cuwarden recover` with this folder makes those of killed ones");
  } else if (contents.error == 0 && contents.reports.empty()) {
    fail(line_about_no_reports(path, contents));
  }
  return given;
}

}  // namespace cuwarden
