// Writes the report about the process of a ledger, as a JSON object of the schema cuwarden.report/1
// (report.schema.json).
#pragma once

#include <cstddef>

#include "reporters/files/output.hpp"
#include "reporters/tables/ledger_report.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// Writes the whole report as JSON to the output, row by row, by LedgerReport::give(), which can be
// called once. Afterwards the caller calls Output::finish(): it writes the last bytes, and returns
// failures of writing. May throw std::bad_alloc. `told`: is called now and then with the number of
// rows that were written and about that of all.
void write_report_json(
    LedgerReport&, Output&,
    FunctionRef<void(std::size_t rows, std::size_t all)> told = [](std::size_t, std::size_t) {});

}  // namespace cuwarden
