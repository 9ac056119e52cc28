// Decides which processes get a report, and how many reports stay, by CUWARDEN_REPORT_IF and
// CUWARDEN_REPORT_KEEP. The process writes these settings into its ledger, so that a command that
// makes the report after its death goes by them, too.
#pragma once

#include <string>

#include "reporters/json/write_report.hpp"
#include "reporters/words/setting_values.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

struct ReportPolicy {
  ReportConditions only_if;
  unsigned keep = 0;         // reports of this program in the report's folder; 0: all
  std::string path_pattern;  // CUWARDEN_REPORT, its % fields unfilled; empty: unknown
};
ReportPolicy report_policy(const ledger::Reader&);

// `options`: those that the report would be written with. A condition counts as met where a ledger
// that lacks records cannot tell.
bool is_report_wanted(const ledger::Reader&, const ReportOptions&, const ReportConditions&);

// Why it is not, as the end of a sentence.
std::string why_no_report(const ReportPolicy&);

// Told to `cuwarden run` in place of a report's path.
inline constexpr char no_report_wanted[] = "no report wanted";
// Told by a `cuwarden run` to another one that it runs below, and that has nothing more to show.
inline constexpr char shown_by_inner_run[] = "shown by an inner run";

}  // namespace cuwarden
