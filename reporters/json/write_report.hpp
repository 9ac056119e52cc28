// Writes the report about the process of a ledger, as a JSON object of the schema cuwarden.report/1
// (report.schema.json).
#pragma once

#include "reporters/files/output.hpp"
#include "reporters/tables/report_options.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// The facts that write_report_json() tells about the report that it wrote.
struct WrittenReport {
  bool ledger_is_damaged = false;  // true if the ledger is damaged; the report says so, too
};

// Makes the report of a ledger and writes it as JSON to the output. The last bytes are written by
// the caller's Output::finish(), which also returns failures of writing. May throw std::bad_alloc.
WrittenReport write_report_json(const ledger::Reader&, const ReportOptions&, Output&);

}  // namespace cuwarden
