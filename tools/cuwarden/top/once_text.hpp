// Makes the text that `cuwarden top --once` prints.
#pragma once

#include <cstddef>
#include <string>

#include "tools/cuwarden/top/top_json.hpp"

namespace cuwarden {

// Form of the text that `cuwarden top --once` prints.
struct ViewForm {
  // Most call stacks or processes to show, each in one line. By default, all are shown.
  std::size_t rows = std::size_t{0} - 1;
  bool colour = false;  // true: lines are coloured by terminal sequences
  // Most letters of a line; 0: no limit. Tables leave out columns for which there is no room. Lines
  // that are still longer are continued in indented ones.
  std::size_t columns = 0;
};

// Returns the text about one process: its totals, then a table with a line for each call stack,
// ViewForm::rows at most. `answer`: the rows of that process alone, with its stacks in the order of
// the table, most bytes first.
std::string process_view(const TopAnswer& answer, const ViewForm&);

// Returns the text about several processes: a table with a line for each, ViewForm::rows at most,
// those with most device bytes first. `answer`: the rows of these processes.
std::string processes_view(const TopAnswer& answer, const ViewForm&);

}  // namespace cuwarden
