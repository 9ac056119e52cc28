// Decides which processes get a report, and how many reports stay, by the settings
// CUWARDEN_REPORT_IF and CUWARDEN_REPORT_KEEP. A process writes these settings into its ledger. So
// a command that makes the report after the process's death decides in the same way.
#pragma once

#include <string>

#include "reporters/json/write_report.hpp"
#include "reporters/words/setting_values.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// The settings of a process that decide if its report is written, and how many reports stay.
struct ReportPolicy {
  // Conditions of which at least one must hold for a report; if all are false, each process gets
  // one.
  ReportConditions only_if;
  // Number of reports of the same program that stay in the report's folder; 0: all stay.
  unsigned keep = 0;
  std::string path_pattern;  // value of CUWARDEN_REPORT, with its % fields; empty: unknown
};
// Returns the policy by the settings in the process's ledger. A setting that the ledger lacks has
// its default in ReportPolicy.
ReportPolicy report_policy(const ledger::Reader&);

// True if the process of a ledger gets a report: a condition holds, or none is set. False if
// CUWARDEN_REPORT is /dev/null. `options`: those with which the report would be made.
// A condition that cannot be judged counts as met. If the ledger lacks records or is damaged, the
// conditions about leaks and refused requests cannot be judged. If calls went past the hooks, the
// condition about leaks cannot be judged.
bool is_report_wanted(const ledger::Reader&, const ReportOptions&, const ReportConditions&);

// Returns the reason why a process with this policy got no report, as the end of a sentence. To be
// called only if is_report_wanted() was false.
std::string why_no_report(const ReportPolicy&);

// `cuwarden run` has a list of the reports of its processes. A process adds this text in place of a
// path if its policy wants no report.
inline constexpr char no_report_wanted[] = "no report wanted";
// `cuwarden run` has a list of the reports of its processes. A `cuwarden run` that was started by
// another one adds this text to the outer one's list in place of a path. The outer one then shows
// no summary.
inline constexpr char shown_by_inner_run[] = "shown by an inner run";

}  // namespace cuwarden
