// Makes the text that `cuwarden top` shows, on a terminal or as output.
#pragma once

#include <cstddef>
#include <string>

#include "tools/cuwarden/top/top_rows.hpp"
#include "tools/cuwarden/top/top_sample.hpp"

namespace cuwarden {

// Size and form of the text that `cuwarden top` shows.
struct ViewSize {
  std::size_t columns = 0;  // most letters in a line, longer lines are cut; 0: no limit
  std::size_t rows = 0;     // most call stacks or processes to show, each in one line; 0: all
  bool colour = false;      // true: lines are coloured by terminal sequences
  bool keys = false;        // true: one line says which keys the user can press
};

// Returns the text about one process: its totals, then a table with a line for each call stack,
// ViewSize::rows at most. `answer`: the rows of that process alone, with its stacks in the order of
// the table. `SortBy`: the number by which the caller has sorted the stacks; the table's head marks
// its column.
std::string process_view(const TopAnswer& answer, SortBy, const ViewSize&);
// Returns the number of lines in the text about one process (process_view()) that come before the
// lines of the call stacks. `answer` and `ViewSize`: as given to process_view(). The caller
// computes from it how many stacks fit on the screen.
std::size_t process_view_head(const TopAnswer& answer, const ViewSize&);

// Returns the text about several processes: a table with a line for each, ViewSize::rows at most,
// sorted by the number that `SortBy` names, largest first. `answer`: the rows of these processes.
std::string processes_view(const TopAnswer& answer, SortBy, const ViewSize&);

}  // namespace cuwarden
