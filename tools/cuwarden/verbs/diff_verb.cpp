// `cuwarden diff`: compares the leaks of two reports by fingerprint.
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reporters/comparison/leaks_by_fingerprint.hpp"
#include "reporters/comparison/unmatched_suppressions.hpp"
#include "reporters/text/elements/leak_check.hpp"
#include "reporters/words/fitted.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/reports/given_reports.hpp"
#include "tools/cuwarden/reports/given_suppressions.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {
namespace {

// The names of the programs whose reports were read.
using Programs = std::set<std::string>;

// Facts about the processes of one side of the comparison.
struct Side {
  Programs programs;
  model::Process last;  // process of the report that was read last
  GivenReports given;

  void add(const IndexedReport& report) {
    if (const model::Text& path = report->process.program)
      programs.insert(printable(std::string(file_name(*path))));
    last = report->process;
  }
};

// Returns the time between two snapshots of one process, as text; empty if the reports are of
// different processes.
std::string time_between(const Side& before, const Side& now) {
  const model::Process &early = before.last, &late = now.last;
  if (before.given.count != 1 || now.given.count != 1 || early.pid != late.pid ||
      early.start != late.start || early.host != late.host)
    return "";
  const std::uint64_t early_ns = early.end_ns.value_or(0), late_ns = late.end_ns.value_or(0);
  if (late_ns <= early_ns) return "";
  return human_time(late_ns - early_ns);
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
  std::vector<std::string> patterns;
  if (!verb.suppressions.empty() && !read_suppressions(verb.suppressions, patterns)) return 2;
  Side before_side, now_side;
  KnownModules modules;
  UnmatchedSuppressions unmatched;
  const Style style(verb.text.colour, verb.text.full_stacks);
  const OptionsForReports options{.module = !verb.text.module.empty(),
                                  .suppressions = !verb.suppressions.empty(),
                                  .symbols = !verb.symbol_folders.empty()};
  before_side.given =
      each_given_report({verb.before}, names, patterns, options,
                        [&](const std::string& path, const IndexedReport& report) {
                          add_leaks_of(path, report, verb.text.module, style, before);
                          before_side.add(report);
                          modules.add(report);
                          unmatched.add(report->suppressions, patterns);
                        });
  checks.compare_with(verb.before, std::move(before));
  now_side.given = each_given_report({verb.now}, names, patterns, options,
                                     [&](const std::string& path, const IndexedReport& report) {
                                       checks.add(path, report);
                                       now_side.add(report);
                                       modules.add(report);
                                       unmatched.add(report->suppressions, patterns);
                                     });
  if (before_side.given.failed || now_side.given.failed) return 2;
  if (!verb.text.module.empty() && !modules.have(verb.text.module)) {
    print_error("diff: " + line_about_unknown_module(verb.text.module, modules));
    return 2;
  }
  if (are_of_different_programs(before_side.programs, now_side.programs) &&
      checks.has_nothing_in_common()) {
    print_error("diff: " + verb.before + " is of " + *before_side.programs.begin() + ", " +
                verb.now + " of " + *now_side.programs.begin() +
                ", and they have no leak in common: give two reports of one program");
    return 2;
  }
  for (const Side* side : {&before_side, &now_side})
    if (!side->given.ledgers.empty()) checks.add_doubt(side->given.ledgers);
  if (const std::string time = time_between(before_side, now_side);
      !time.empty() && !verb.checks.is_output_alone())
    print_line(STDOUT_FILENO, "two looks at one process, with " + time + " between them");
  if (const std::string text = unmatched.text(); !text.empty())
    print(verb.checks.is_output_alone() ? STDERR_FILENO : STDOUT_FILENO,
          fitted(text, {verb.text.columns, verb.text.ascii, verb.text.full_stacks}) + "\n");
  return checks.finish();
}

}  // namespace cuwarden
