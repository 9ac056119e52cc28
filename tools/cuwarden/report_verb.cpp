#include <unistd.h>

#include <algorithm>
#include <optional>

#include "tools/cuwarden/command_output.hpp"
#include "tools/cuwarden/ledger_file.hpp"
#include "tools/cuwarden/recovery.hpp"
#include "tools/cuwarden/verbs.hpp"

namespace cuwarden {

int report_verb(const ReportVerb& verb) {
  int status = 0;
  bool first = true;
  TimeForUsers time(usual_time_for_a_ledger);
  for (std::string path : verb.files) {
    std::string error;
    std::optional<std::string> content;  // read already, with its owner's rights
    // A ledger that a killed process left behind becomes the report that it would have written.
    if (path != "-" && is_ledger(path)) {
      const Recovery made = recover_as_owner(path, {.wants_content = true, .always = true}, time);
      if (made.report.empty()) {
        print_error(path + ": " + made.text);
        status = 2;
        continue;
      }
      print_line(STDERR_FILENO,
                 "report: " + made.report +
                     (made.kept.empty()
                          ? " (of the ledger, which is removed: all that it held is there)"
                          : " (of the ledger, which is damaged and stays at " + made.kept + ")"));
      path = made.report;
      if (made.owner) content = made.content;
    }
    const auto report =
        content ? ReportDocument::parse(*content, path, error) : ReportDocument::load(path, error);
    std::string text;
    std::uint64_t leaks = 0;
    std::optional<std::string> doubt;
    if (report) {
      try {
        text = text_report(*report, verb.text);
        leaks = count_leaks(*report, verb.text);
        doubt = lacks_records(*report);
      } catch (const nlohmann::json::exception&) {
        error = path + ": a damaged report (a table is not what its schema says)";
      }
    }
    if (!error.empty()) {
      print_error(error);
      status = 2;
      continue;
    }
    print(STDOUT_FILENO, (first ? "" : "\n") + text);
    first = false;
    if (!verb.fail_on_leak) continue;
    if (leaks > 0 || doubt) status = std::max(status, 1);
    // As with LeakSanitizer, a check that could not be made has not been passed.
    if (leaks == 0 && doubt) {
      print_error(path + ": --fail-on-leak: no leak is in this report, but it is not " +
                  "complete: " + *doubt);
    }
  }
  return status;
}

}  // namespace cuwarden
