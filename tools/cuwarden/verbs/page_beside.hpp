// Makes the page about a report (`cuwarden export --format html`), and writes it beside the report.
#pragma once

#include <string>

#include "reporters/exports/exports.hpp"
#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// True if this command was built with the page; otherwise prints an error line that says how to get
// it.
bool is_page_there();

// Adds a report to an exported file (CommonFile::add()), and shows a line of progress on a
// terminal. `path`: path of the report's file.
void add_showing_progress(CommonFile&, const IndexedReport&, const std::string& path);
// Writes an exported file (CommonFile::write()), and shows a line of progress on a terminal.
void write_showing_progress(CommonFile&, Output&);

// Writes the page about the report beside the report's file, with the ending .html, and prints its
// path on standard error. Replaces an earlier page. If another file has that name, or a file that
// cannot be read, or if the page cannot be written, prints an error line instead. Only the owner
// can read a new page. To be called only if is_page_there() is true. `report_path`: path of the
// report's file.
void write_page_beside(const std::string& report_path, const IndexedReport&);

}  // namespace cuwarden
