// Makes the text that `cuwarden top` shows, on a terminal or as output.
#pragma once

#include <cstddef>
#include <string>

#include "tools/cuwarden/top/top_rows.hpp"
#include "tools/cuwarden/top/top_sample.hpp"

namespace cuwarden {

// Size and form of the text that `cuwarden top` shows.
struct ViewSize {
  std::size_t columns = 0;  // width in letters; 0: as wide as the text
  std::size_t rows = 0;     // most groups or processes to show, each in one line; 0: all
  bool colour = false;      // true: lines are coloured by terminal sequences
  bool keys = false;        // true: one line says which key does what
};

// Returns the text about one process: its totals, then a table with a line for each call stack.
// `answer`: the rows of that process alone, with its stacks in the order of the table. `SortBy`:
// the order that the table's head marks.
std::string process_view(const TopAnswer& answer, SortBy, const ViewSize&);
// Returns the number of lines that process_view() puts above the lines of the call stacks, for the
// same arguments. The caller computes from it how many stacks fit on the screen.
std::size_t process_view_head(const TopAnswer& answer, const ViewSize&);

// Returns the view of several processes: a table with a line for each, sorted by `SortBy`, largest
// number first.
std::string processes_view(const TopAnswer& answer, SortBy, const ViewSize&);

}  // namespace cuwarden
