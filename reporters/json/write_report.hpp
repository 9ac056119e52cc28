// Writes what a ledger shows as one `cuwarden.report/1` object (report.schema.json).
#pragma once

#include "reporters/files/output.hpp"
#include "reporters/tables/report_options.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

struct WrittenReport {
  bool ledger_is_damaged = false;  // and the report says so
};

// May throw std::bad_alloc. Errors of writing are the output's.
WrittenReport write_report_json(const ledger::Reader&, const ReportOptions&, Output&);

}  // namespace cuwarden
