// `cuwarden export`: writes the leaks of reports in a format of other programs.
#include <unistd.h>

#include "reporters/exports/exports.hpp"
#include "reporters/words/error_text.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/whole_file.hpp"
#include "tools/cuwarden/reports/given_baseline.hpp"
#include "tools/cuwarden/reports/given_reports.hpp"
#include "tools/cuwarden/reports/given_suppressions.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {

int export_verb(const ExportVerb& verb) {
  ReportNames names(verb.symbol_folders);
  ExportedLeaks exported;
  bool failed = false;
  if (!verb.baseline.empty()) {
    auto known = read_baseline(verb.baseline);
    if (!known) return 2;
    exported.known = std::move(*known);
  }
  std::vector<std::string> patterns;
  if (!verb.suppressions.empty() && !read_suppressions(verb.suppressions, patterns)) return 2;
  const OptionsForReports options{.suppressions = !verb.suppressions.empty(),
                                  .symbols = !verb.symbol_folders.empty()};
  for (const std::string& file : verb.files) {
    const GivenReports given = each_given_report(
        file, names, patterns, options, [&](const std::string&, const IndexedReport& report) {
          add_leaks_of(report, "", Style(false), exported.leaks);
        });
    failed |= given.failed || !given.ledgers.empty();
  }
  // Leaks of a part of the reports would look like the leaks of all.
  if (failed) return 2;
  const std::string text = verb.format->write(exported);
  if (verb.output.empty() || verb.output == "-") {
    print(STDOUT_FILENO, text);
  } else if (const int error = write_whole_file(verb.output, text)) {
    print_error("cannot write " + verb.output + ": " + error_text(error));
    return 2;
  }
  return 0;
}

}  // namespace cuwarden
