// Writes the page about a report (`cuwarden export --format html`) beside the report's file.
#pragma once

#include <string>

#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// Returns true if this command was built with the page; otherwise prints an error line that says
// how to get it.
bool is_page_there();

// Writes the page about the report beside the report's file at the path, with the ending .html, and
// prints its path on standard error. An earlier page is replaced. Prints an error line if the page
// cannot be written. Only its owner can read a new page, as is so for the report.
void write_page_beside(const std::string& report_path, const IndexedReport&);

}  // namespace cuwarden
