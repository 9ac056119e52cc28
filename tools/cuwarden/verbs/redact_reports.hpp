// `cuwarden report --redact`: makes copies of reports without private facts, to send to a vendor.
#pragma once

#include "tools/cuwarden/reports/report_names.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {

// Writes a redacted copy of each report in ReportVerb::files, to ReportVerb::output or, if that is
// empty, beside the report. Before, adds the function names that `ReportNames` can find. Prints the
// paths of the copies, and an error line for each report that failed. Returns the exit status: 0,
// or 2 if a report failed.
int redact_reports(const ReportVerb&, ReportNames&);

}  // namespace cuwarden
