// Writes the report about the process of a ledger, as a JSON object of the schema cuwarden.report/1
// (report.schema.json).
#pragma once

#include <cstddef>

#include "reporters/files/output.hpp"
#include "reporters/tables/ledger_report.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// Writes the whole report as JSON to the output, row by row. Calls LedgerReport::give(), which may
// be called only once. Afterwards the caller calls Output::finish(), which writes the last bytes
// and returns failures of writing. May throw std::bad_alloc. `told`: is called now and then with
// the number of rows that were written so far, and an estimate of the number of all rows.
void write_report_json(
    LedgerReport&, Output&,
    FunctionRef<void(std::size_t rows, std::size_t all)> told = [](std::size_t, std::size_t) {});

}  // namespace cuwarden
