// Writes what a ledger shows as one `cuwarden.report/1` object (report.schema.json).
#pragma once

#include "reporters/files/output.hpp"
#include "reporters/tables/report_options.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Facts about a report that was just written.
struct WrittenReport {
  bool ledger_is_damaged = false;  // true if the ledger is damaged; the report says so, too
};

// Writes the report of a ledger as JSON. May throw std::bad_alloc. Errors of writing are in
// output.error().
WrittenReport write_report_json(const ledger::Reader&, const ReportOptions&, Output&);

}  // namespace cuwarden
