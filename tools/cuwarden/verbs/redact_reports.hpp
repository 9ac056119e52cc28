// `cuwarden report --redact`: makes copies of reports without private facts, to send to a vendor.
#pragma once

#include "tools/cuwarden/reports/report_names.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {

// Writes a redacted copy of each report, with all function names that can be found, and prints the
// copies' paths. Returns the exit status.
int redact_reports(const ReportVerb&, ReportNames&);

}  // namespace cuwarden
