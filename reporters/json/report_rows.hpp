// Parses a report's JSON row by row, so that the parsed JSON of a table is never whole in memory.
#pragma once

#include <cstddef>
#include <string_view>

#include "reporters/json/json_bounds.hpp"
#include "reporters/json/parse.hpp"
#include "reporters/model/report.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// A report that was parsed row by row.
struct ParsedRows {
  // JSON of the report without the rows of its tables, and without properties that model::Report
  // does not have. If the text is no JSON, is_discarded() is true for this value.
  Json rest;
  // The report's tables; all fields that are no tables have their initial values.
  model::Report tables;
  // Text about the first wrong row, such as "stacks[3].id is missing"; null: none.
  Complaint wrong;
};

// Parses the text of a report. `rows`: number of rows of each table, by which memory is reserved.
// `read`: is called now and then with the number of bytes that were read so far.
ParsedRows parse_rows(std::string_view text, const RowsOfTables& rows,
                      FunctionRef<void(std::size_t bytes)> read);

}  // namespace cuwarden
