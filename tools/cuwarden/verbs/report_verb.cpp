#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "reporters/comparison/unmatched_suppressions.hpp"
#include "reporters/files/file_status.hpp"
#include "reporters/json/read_report.hpp"
#include "reporters/merging/leaks_of_merged.hpp"
#include "reporters/merging/merged_json.hpp"
#include "reporters/merging/merged_text.hpp"
#include "reporters/merging/merger.hpp"
#include "reporters/text/elements/leak_check.hpp"
#include "reporters/words/fitted.hpp"
#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/ledgers/recovery.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/progress.hpp"
#include "tools/cuwarden/reports/given_reports.hpp"
#include "tools/cuwarden/reports/given_suppressions.hpp"
#include "tools/cuwarden/reports/latest_reports.hpp"
#include "tools/cuwarden/reports/report_folder.hpp"
#include "tools/cuwarden/reports/report_names.hpp"
#include "tools/cuwarden/verbs/redact_reports.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {
namespace {

class Report {
 public:
  Report(const ReportVerb& verb, ReportNames& names)
      : verb_(verb),
        names_(names),
        style_(verb.text.colour, verb.text.full_stacks),
        time_(usual_time_for_a_ledger),
        checks_(verb.checks, verb.text, STDOUT_FILENO) {}

  // Reads what is needed before the first report. Returns false after an error line.
  bool prepare() {
    return checks_.read_baseline() &&
           (verb_.suppressions.empty() || read_suppressions(verb_.suppressions, suppressions_));
  }

  void show(const std::string& argument) {
    if (argument != "-" && is_folder(argument)) return show_folder(argument);
    // A ledger of a killed process is made into the report that the process would have written.
    if (argument == "-" || !is_ledger(argument)) return show_file(argument);
    const Recovery made =
        recover_as_owner(argument, {.wants_content = true, .always = true}, time_);
    if (made.report.empty()) return fail(argument + ": " + made.text);
    print_line(STDERR_FILENO,
               "report: " + made.report +
                   (made.kept.empty() ? " (made from the ledger, which is removed)"
                                      : " (made from the ledger, which is damaged and stays at " +
                                            made.kept + ")"));
    if (made.owner)
      show_whole(made.report, {made.content, ReportNames::Paths::distrusted});
    else
      show_file(made.report);
  }

  int finish() {
    if (!is_filter_known_ && any_read_) {
      print_error("report: " + line_about_unknown_module(verb_.text.module, modules_));
      return 2;
    }
    // Wrong input alone is no outcome of a check.
    if (!any_read_) return status_;
    // A suppression may match in a report that could not be read.
    if (has_several_ && status_ == 0)
      if (const std::string text = unmatched_.text(); !text.empty())
        put((first_ ? "" : "\n") +
            fitted(text, {verb_.text.columns, verb_.text.ascii, verb_.text.full_stacks}));
    return std::max(status_, checks_.finish());
  }

 private:
  void fail(const std::string& line) {
    print_error(line);
    checks_.add_doubt(line);
    status_ = 2;
  }

  // The text of a report's file, and the trust in the paths that it names.
  struct Content {
    std::string text;
    ReportNames::Paths paths;
  };

  // Returns null after an error line.
  std::optional<Content> load(const std::string& path) {
    std::string error;
    auto text = load_content(path, error);
    if (text) return Content{std::move(*text), names_.paths_in(path)};
    fail(error);
    return std::nullopt;
  }

  // Reads a report, checks its leaks, and calls show(report). Returns false after an error line.
  template <class Show>
  bool read(const std::string& path, const Content& content, const Show& show) {
    std::string error;
    auto report = parse_with_progress(content.text, name_of_input(path), error);
    if (!report) {
      fail(error);
      return false;
    }
    names_.complete(*report, content.paths);
    suppress_leaks(*report, suppressions_);
    const IndexedReport indexed(std::move(*report));
    show(indexed);
    check_modules(indexed);
    unmatched_.add(indexed->suppressions);
    checks_.add(path, indexed);
    return true;
  }

  void check_modules(const IndexedReport& report) {
    any_read_ = true;
    if (!is_filter_known_) {
      modules_.add(report);
      is_filter_known_ = verb_.text.module.empty() || modules_.have(verb_.text.module);
    }
  }

  // Shows the text once a report is known to have a module that --module names; until then it is
  // kept. If no report has one, the option is wrong and nothing is shown.
  void put(const std::string& text) {
    kept_ += text;
    if (!is_filter_known_) return;
    if (!verb_.checks.is_output_alone()) print(STDOUT_FILENO, kept_);
    kept_.clear();
  }

  void show_file(const std::string& path) {
    const auto content = load(path);
    if (!content) return;
    if (is_merged_report(content->text))
      show_merged(path, content->text);
    else
      show_whole(path, *content);
  }

  // Returns false after an error line.
  bool show_whole(const std::string& path, const Content& content) {
    std::string text;
    TextOptions options = verb_.text;
    options.unmatched_suppressions = !has_several_;
    if (!read(path, content, [&](const IndexedReport& report) {
          text = verb_.format->write(report, options,
                                     ToldProgress("making the text of " + name_of_input(path)));
        }))
      return false;
    put((first_ ? "" : "\n") + text);
    first_ = false;
    return true;
  }

  void show_merged(const std::string& path, const std::string& content) {
    const std::string name = name_of_input(path);
    const OptionsForReports options{.module = !verb_.text.module.empty(),
                                    .suppressions = !verb_.suppressions.empty(),
                                    .symbols = !verb_.symbol_folders.empty()};
    if (const auto refusal = options.refusal(name)) return fail(*refusal);
    std::string error;
    const auto merged = parse_merged_with_progress(content, name, error);
    if (!merged) return fail(error);
    for (const std::string& reason : merged->tool.reasons)
      print_error(name + ": it is incomplete: " + reason);
    any_read_ = true;
    checks_.add(path, IndexedReport(leaks_of_merged(*merged)));
    show_processes(*merged);
  }

  void show_processes(const model::MergedReport& merged) {
    const std::string text = merged_text(merged, verb_.text.top, style_);
    if (text.empty()) return;
    put((first_ ? "" : "\n") +
        fitted(text, {verb_.text.columns, verb_.text.ascii, verb_.text.full_stacks}));
    first_ = false;
  }

  void show_folder(const std::string& folder) {
    const FolderContents contents = contents_of(folder);
    if (contents.error != 0) return fail(line_about_unreadable(folder, contents.error));
    for (const std::string& line : contents.unreadable) fail(line);
    if (!contents.ledgers.empty()) {
      const std::string without_report = line_about_ledgers(folder, contents);
      print_error(without_report +
                  ", still running or killed; `cuwarden recover` with this folder makes the "
                  "reports of killed ones");
      checks_.add_doubt(without_report);
    }
    if (contents.reports.empty()) {
      if (contents.ledgers.empty()) fail(line_about_no_reports(folder, contents));
      return;
    }
    ReportsByProcess found;
    for (const std::string& path : contents.reports) found.add({path, path_below(folder, path)});
    if (found.size() == 1) {
      found.each(
          [&](const FoundReport& file) {
            const auto content = load(file.path);
            return content && show_whole(file.path, *content);
          },
          [](const auto& report, const auto& counted) { tell_left_out(report, counted); });
      return;
    }
    has_several_ = true;
    Merger merger(verb_.text.module);
    Progress progress("reading reports", found.size());
    std::size_t done = 0;
    found.each(
        [&](const FoundReport& file) {
          progress.done(done++);
          const auto content = load(file.path);
          return content && read(file.path, *content, [&](const IndexedReport& report) {
                   merger.add(file.name, report, ToldProgress("merging leaks of " + file.name));
                 });
        },
        [](const auto& report, const auto& counted) { tell_left_out(report, counted); });
    show_processes(merger.finish());
  }

  const ReportVerb& verb_;
  ReportNames& names_;
  Style style_;
  TimeForUsers time_;
  LeakChecks checks_;
  std::vector<std::string> suppressions_;  // patterns that the user gave
  UnmatchedSuppressions unmatched_;
  // True if the suppressions that matched nothing are told once for all reports.
  bool has_several_ = verb_.files.size() > 1;
  KnownModules modules_;
  bool is_filter_known_ = verb_.text.module.empty();  // true once a report has a module of --module
  bool any_read_ = false, first_ = true;
  std::string kept_;
  int status_ = 0;
};

}  // namespace

int report_verb(const ReportVerb& verb) {
  ReportNames names(verb.symbol_folders);
  if (verb.redact) return redact_reports(verb, names);
  Report report(verb, names);
  if (!report.prepare()) return 2;
  for (const std::string& argument : verb.files) report.show(argument);
  return report.finish();
}

}  // namespace cuwarden
