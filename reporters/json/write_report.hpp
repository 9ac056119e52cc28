// Writes the report about the process of a ledger, as a JSON object of the schema cuwarden.report/1
// (report.schema.json).
#pragma once

#include "reporters/files/output.hpp"
#include "reporters/tables/ledger_report.hpp"

namespace cuwarden {

// Writes the report as JSON to the output, row by row, as LedgerReport::give() hands it out. The
// last bytes are written by the caller's Output::finish(), which also returns failures of writing.
// May throw std::bad_alloc.
void write_report_json(LedgerReport&, Output&);

}  // namespace cuwarden
