#include "tools/cuwarden/reports/given_reports.hpp"

#include <utility>

#include "reporters/files/file_status.hpp"
#include "reporters/json/read_report.hpp"
#include "reporters/merging/leaks_of_merged.hpp"
#include "reporters/merging/merged_json.hpp"
#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/progress.hpp"
#include "tools/cuwarden/reports/given_suppressions.hpp"
#include "tools/cuwarden/reports/latest_reports.hpp"
#include "tools/cuwarden/reports/report_folder.hpp"

namespace cuwarden {

std::optional<model::Report> parse_with_progress(std::string_view content, const std::string& name,
                                                 std::string& error) {
  Progress progress("reading " + name, content.size(), Progress::Unit::bytes);
  return parse_report(content, name, error, nullptr,
                      [&](std::size_t bytes, std::size_t) { progress.done(bytes); });
}

std::optional<model::MergedReport> parse_merged_with_progress(std::string_view content,
                                                              const std::string& name,
                                                              std::string& error) {
  return parse_merged_report(content, name, error,
                             ToldProgress("reading " + name, Progress::Unit::bytes));
}

std::optional<model::Report> load_with_progress(const std::string& path, std::string& error) {
  const auto content = load_content(path, error);
  return content ? parse_with_progress(*content, name_of_input(path), error) : std::nullopt;
}

std::optional<ReportCopy> load_copy_with_progress(const std::string& path, std::string& error) {
  return ReportCopy::load(path, error,
                          ToldProgress("reading " + name_of_input(path), Progress::Unit::bytes));
}

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

namespace {

// Prints the line, and notes that a report is missing.
void fail(const std::string& line, GivenReports& given) {
  print_error(line);
  given.failed = true;
}

// Finds the reports in the folder.
void find_in(const std::string& folder, ReportsByProcess& found, GivenReports& given) {
  const FolderContents contents = contents_of(folder);
  if (contents.error != 0) fail(line_about_unreadable(folder, contents.error), given);
  for (const std::string& line : contents.unreadable) fail(line, given);
  for (const std::string& path : contents.reports) found.add({path, path});
  if (!contents.ledgers.empty()) {
    given.ledgers = line_about_ledgers(folder, contents);
    print_error(given.ledgers + "; `cuwarden recover` with this folder makes those of killed ones");
  } else if (contents.error == 0 && contents.reports.empty()) {
    fail(line_about_no_reports(folder, contents), given);
  }
}

}  // namespace

GivenReports each_given_report(
    const std::vector<std::string>& paths, ReportNames& names,
    const std::vector<std::string>& patterns, const OptionsForReports& options,
    FunctionRef<void(const std::string& path, const IndexedReport&)> visit,
    FunctionRef<bool()> goes_on) {
  GivenReports given;
  ReportsByProcess found;
  for (const std::string& path : paths) {
    if (path != "-" && is_folder(path))
      find_in(path, found, given);
    else if (path != "-" && is_ledger(path))
      fail(path + ": it is a ledger; `cuwarden report` with it makes its report", given);
    else
      found.add_alone({path, name_of_input(path)});
  }
  const auto refuse = [&](const std::string& line) {
    fail(line, given);
    return false;
  };
  const auto read = [&](const FoundReport& file) {
    std::string error;
    const auto content = load_content(file.path, error);
    if (!content) return refuse(error);
    if (is_merged_report(*content)) {
      if (const auto refusal = options.refusal(file.name)) return refuse(*refusal);
      const auto merged = parse_merged_with_progress(*content, file.name, error);
      if (!merged) return refuse(error);
      visit(file.path, IndexedReport(leaks_of_merged(*merged)));
    } else {
      auto report = parse_with_progress(*content, file.name, error);
      if (!report) return refuse(error);
      names.complete(*report, names.paths_in(file.path));
      suppress_leaks(*report, patterns);
      visit(file.path, IndexedReport(std::move(*report)));
    }
    ++given.count;
    return true;
  };
  Progress progress("reading reports", found.size());
  std::size_t done = 0;
  found.each(
      [&](const FoundReport& file) {
        progress.done(done++);
        return goes_on() && read(file);
      },
      [](const auto& report, const auto& counted) { tell_left_out(report, counted); });
  return given;
}

}  // namespace cuwarden
