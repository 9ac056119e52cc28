// Decides which processes get a report, and how many reports stay, by the settings
// CUWARDEN_REPORT_IF and CUWARDEN_REPORT_KEEP. The process writes these settings into its ledger.
// So a command that makes the report after the process's death decides in the same way.
#pragma once

#include <string>

#include "reporters/json/write_report.hpp"
#include "reporters/words/setting_values.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// The settings of a process that decide if its report is written, and how many reports stay.
struct ReportPolicy {
  ReportConditions only_if;  // conditions of which one must hold for a report; all false: always
  unsigned keep = 0;  // number of reports of this program that stay in the report's folder; 0: all
  std::string path_pattern;  // value of CUWARDEN_REPORT, with its % fields; empty: unknown
};
// Returns the policy of the process by the settings in its ledger. Settings that the ledger lacks
// have the defaults of ReportPolicy.
ReportPolicy report_policy(const ledger::Reader&);

// True if the process of a ledger gets a report: one of the conditions is met, or no condition is
// set. False if CUWARDEN_REPORT is /dev/null. `options`: those with which the report would be made.
// If the ledger lacks records or is damaged, so that a condition about leaks or refused requests
// cannot be judged, the condition counts as met. If calls went past the hooks, the condition about
// leaks counts as met.
bool is_report_wanted(const ledger::Reader&, const ReportOptions&, const ReportConditions&);

// Returns the reason why a process with this policy got no report (is_report_wanted() was false),
// as the end of a sentence.
std::string why_no_report(const ReportPolicy&);

// Text that a process adds to the list of reports of its `cuwarden run`, instead of a path, if the
// policy wants no report.
inline constexpr char no_report_wanted[] = "no report wanted";
// Text that a `cuwarden run` adds to the list of reports of the outer `cuwarden run` that started
// it, instead of a path. The outer one then shows no summary.
inline constexpr char shown_by_inner_run[] = "shown by an inner run";

}  // namespace cuwarden
