// Makes the text that `cuwarden top` shows, on a terminal or as output.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "tools/cuwarden/top/top_names.hpp"
#include "tools/cuwarden/top/top_sample.hpp"

namespace cuwarden {

// Size and form of the text.
struct ViewSize {
  std::size_t columns = 0;  // width in letters; 0: as wide as the text
  std::size_t rows = 0;     // most groups or processes to show, each in one line; 0: all
  bool colour = false;      // true: lines are coloured by terminal sequences
  bool keys = false;        // true: one line says which key does what
};

// A process that `cuwarden top` shows. The pointers are never null, and are not owned.
struct WatchedProcess {
  pid_t pid = 0;
  const ledger::Reader* reader = nullptr;  // of the process's ledger
  const Recent* recent = nullptr;          // the last samples; at least one
  const GrowingGroups* growing = nullptr;
  bool ended = false;  // true if the process has ended; then the last sample stays
};

// Returns the view of one process: its totals, then a table with a line for each group. `groups`:
// the groups in the order of the table. `SortBy`: the order that the table's head marks. `name_of`:
// returns the name of the code that allocates, by a group's id.
std::string process_view(const WatchedProcess&, const std::vector<GroupSample>& groups, SortBy,
                         const std::function<CallSiteName(std::uint32_t)>& name_of,
                         const ViewSize&);
// Returns the number of lines that process_view() puts above the groups. The caller computes from
// it how many groups fit on the screen.
std::size_t process_view_head(const WatchedProcess&, const ViewSize&);

// Returns the view of several processes: a table with a line for each, sorted by `SortBy`, largest
// number first.
std::string processes_view(const std::vector<WatchedProcess>&, SortBy, const ViewSize&);

}  // namespace cuwarden
