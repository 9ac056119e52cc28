// `cuwarden report --redact`: copies of reports to send to a vendor.
#pragma once

#include "tools/cuwarden/report_names.hpp"
#include "tools/cuwarden/verbs.hpp"

namespace cuwarden {

// Writes a copy of each file, with all the names that can be had, and says where it lies. The exit
// status.
int redact_reports(const ReportVerb&, ReportNames&);

}  // namespace cuwarden
