// `cuwarden diff`: compares the leaks of two reports by fingerprint.
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "reporters/comparison/leaks_by_fingerprint.hpp"
#include "reporters/text/leak_check.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/reports/given_reports.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {
namespace {

// The names of the programs whose reports were read.
using Programs = std::set<std::string>;

void add_program(const IndexedReport& report, Programs& programs) {
  if (const model::Text& path = report->process.program)
    programs.insert(printable(std::string(file_name(*path))));
}

// True if no program is in both sets, so that a comparison would only show that.
bool are_of_different_programs(const Programs& before, const Programs& now) {
  return !before.empty() && !now.empty() &&
         std::ranges::none_of(now, [&](const std::string& name) { return before.contains(name); });
}

}  // namespace

int diff_verb(const DiffVerb& verb) {
  ReportNames names(verb.symbol_folders);
  LeakChecks checks(verb.checks, verb.text, STDOUT_FILENO);
  LeaksByFingerprint before;
  Programs programs_before, programs_now;
  KnownModules modules;
  const Style style(verb.text.colour, verb.text.full_stacks);
  const GivenReports old =
      each_given_report(verb.before, names, [&](const std::string&, const IndexedReport& report) {
        add_leaks_of(report, verb.text.module, style, before);
        add_program(report, programs_before);
        modules.add(report);
      });
  checks.compare_with(verb.before, std::move(before));
  const GivenReports young =
      each_given_report(verb.now, names, [&](const std::string& path, const IndexedReport& report) {
        checks.add(path, report);
        add_program(report, programs_now);
        modules.add(report);
      });
  if (old.failed || young.failed) return 2;
  if (!verb.text.module.empty() && !modules.have(verb.text.module)) {
    print_error("diff: " + line_about_unknown_module(verb.text.module, modules));
    return 2;
  }
  if (are_of_different_programs(programs_before, programs_now) && checks.has_nothing_in_common()) {
    print_error("diff: " + verb.before + " is of " + *programs_before.begin() + ", " + verb.now +
                " of " + *programs_now.begin() +
                ", and they have no leak in common: give two reports of one program");
    return 2;
  }
  for (const GivenReports* given : {&old, &young})
    if (!given->ledgers.empty()) checks.add_doubt(given->ledgers);
  return checks.finish();
}

}  // namespace cuwarden
