#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "reporters/comparison/job_summary.hpp"
#include "reporters/files/file_status.hpp"
#include "reporters/json/read_report.hpp"
#include "reporters/text/leak_check.hpp"
#include "reporters/text/text_summary.hpp"
#include "reporters/words/error_text.hpp"
#include "reporters/words/printable.hpp"
#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/ledgers/recovery.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/reports/given_suppressions.hpp"
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
        style_(verb.text.colour),
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
    if (argument == "-" || !is_ledger(argument)) return show_whole(argument);
    const Recovery made =
        recover_as_owner(argument, {.wants_content = true, .always = true}, time_);
    if (made.report.empty()) return fail(argument + ": " + made.text);
    print_line(STDERR_FILENO,
               "report: " + made.report +
                   (made.kept.empty() ? " (made from the ledger, which is removed)"
                                      : " (made from the ledger, which is damaged and stays at " +
                                            made.kept + ")"));
    show_whole(made.report, made.owner ? std::optional(made.content) : std::nullopt);
  }

  int finish() {
    if (!is_filter_known_ && any_read_) {
      print_error("report: " + line_about_unknown_module(verb_.text.module, modules_));
      return 2;
    }
    // Wrong input alone is no outcome of a check.
    if (!any_read_) return status_;
    return std::max(status_, checks_.finish());
  }

 private:
  void fail(const std::string& line) {
    print_error(line);
    checks_.add_doubt(line);
    status_ = 2;
  }

  // Reads a report, checks its leaks, and returns the text to show; null after an error line.
  template <class Show>
  std::optional<std::string> read(const std::string& path, const Show& show_report,
                                  std::optional<std::string> content = {}) {
    std::string error;
    auto report = content ? parse_report(*content, path, error) : load_report(path, error);
    if (!report) {
      fail(error);
      return std::nullopt;
    }
    names_.complete(*report, content ? ReportNames::Paths::distrusted : names_.paths_in(path));
    suppress_leaks(*report, suppressions_);
    const IndexedReport indexed(std::move(*report));
    const LeakCheck check = check_leaks(indexed, verb_.text.module);
    std::string text = show_report(indexed, check);
    check_modules(indexed);
    checks_.add(path, indexed);
    return text;
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

  void show_whole(const std::string& path, std::optional<std::string> content = {}) {
    const auto text = read(
        path,
        [&](const IndexedReport& report, const LeakCheck&) {
          return verb_.format->write(report, verb_.text);
        },
        std::move(content));
    if (!text) return;
    put((first_ ? "" : "\n") + *text);
    first_ = false;
  }

  void show_folder(const std::string& folder) {
    const FolderContents contents = contents_of(folder);
    if (contents.error != 0) return fail(folder + ": " + error_text(contents.error));
    for (const std::string& line : contents.unreadable) fail(line);
    if (!contents.ledgers.empty()) {
      const std::string without_report = line_about_ledgers(folder, contents);
      print_error(without_report +
                  ", still running or killed; `cuwarden recover` with this folder makes the "
                  "reports of killed ones");
      checks_.add_doubt(without_report);
    }
    if (contents.reports.empty()) {
      if (contents.ledgers.empty())
        fail(folder + ": it is a folder without reports; give the folder of CUWARDEN_REPORT");
      return;
    }
    if (contents.reports.size() == 1) return show_whole(contents.reports.front());

    DeviceSummary devices;
    JobSummary job(style_);
    std::string lines;
    for (const std::string& path : contents.reports) {
      const auto line = read(path, [&](const IndexedReport& report, const LeakCheck& check) {
        devices.add(report);
        job.add(report);
        return process_line(report, check, style_);
      });
      if (!line) continue;
      const std::size_t name_at = folder.size() + (folder.ends_with('/') ? 0 : 1);
      lines += printable(path.substr(name_at)) + ": " + *line + "\n";
    }
    // The sentence that matters comes first.
    std::string text;
    for (const std::string& part : {job.first_refusal() + job.idle_devices(), lines,
                                    devices.lines(), job.common_leaks(verb_.text.top)})
      if (!part.empty()) text += (text.empty() && first_ ? "" : "\n") + part;
    if (lines.empty()) return;
    put(text);
    first_ = false;
  }

  const ReportVerb& verb_;
  ReportNames& names_;
  Style style_;
  TimeForUsers time_;
  LeakChecks checks_;
  std::vector<std::string> suppressions_;  // patterns that the user gave
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
