// `cuwarden report --redact`: makes copies of reports without private facts, to send to a vendor.
#pragma once

#include "tools/cuwarden/reports/report_names.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {

// Writes a redacted copy of each report in ReportVerb::files beside the report, as
// NAME.redacted.json for NAME.json; the host's name is replaced in NAME. The copy of standard input
// is report.redacted.json in the current folder. If ReportVerb::output is not empty, there is one
// report, whose copy gets that path. The copies also get the function names that `ReportNames` can
// find. Prints the path of each copy to stderr, unless the copy goes to standard output, a pipe or
// a device. Prints an error line for each report that could not be read or copied. Returns the
// command's exit status: 0, or 2 after an error line.
int redact_reports(const ReportVerb&, ReportNames&);

}  // namespace cuwarden
