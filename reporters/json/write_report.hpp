// Writes the report about the process of a ledger, as a JSON object of the schema cuwarden.report/1
// (report.schema.json).
#pragma once

#include "reporters/files/output.hpp"
#include "reporters/tables/ledger_report.hpp"

namespace cuwarden {

// Writes the whole report as JSON to the output, row by row, by LedgerReport::give(), which can be
// called once. Afterwards the caller calls Output::finish(): it writes the last bytes, and returns
// failures of writing. May throw std::bad_alloc.
void write_report_json(LedgerReport&, Output&);

}  // namespace cuwarden
