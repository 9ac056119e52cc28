// Decides which processes get a report, and how many reports stay, by CUWARDEN_REPORT_IF and
// CUWARDEN_REPORT_KEEP. The process writes these settings into its ledger, so that a command that
// makes the report after its death goes by them, too.
#pragma once

#include <string>

#include "reporters/json/write_report.hpp"
#include "reporters/words/setting_values.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Says which reports of a program are written and kept.
struct ReportPolicy {
  ReportConditions only_if;
  unsigned keep = 0;         // reports of this program in the report's folder; 0: all
  std::string path_pattern;  // value of CUWARDEN_REPORT, with its % fields; empty: unknown
};
// Returns the policy by the settings that the ledger holds.
ReportPolicy report_policy(const ledger::Reader&);

// True if one of the conditions is met, or if none is set. `options`: those that the report would
// be written with. If the ledger lacks records, so that a condition cannot be judged, it counts as
// met.
bool is_report_wanted(const ledger::Reader&, const ReportOptions&, const ReportConditions&);

// Returns the reason why no report is wanted, as the end of a sentence.
std::string why_no_report(const ReportPolicy&);

// Text that `cuwarden run` gets instead of a report's path if the policy wants no report.
inline constexpr char no_report_wanted[] = "no report wanted";
// Text that a `cuwarden run` sends to the outer `cuwarden run` that started it: the outer one shows
// no summary.
inline constexpr char shown_by_inner_run[] = "shown by an inner run";

}  // namespace cuwarden
