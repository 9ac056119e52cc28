// What `top` shows, as lines of text.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tools/cuwarden/ledger_file.hpp"
#include "tools/cuwarden/top_names.hpp"
#include "tools/cuwarden/top_sample.hpp"

namespace cuwarden {

struct ViewSize {
  std::size_t columns = 0;  // 0: as wide as the text
  std::size_t rows = 0;     // at most so many groups or processes are shown; 0: all
  bool colour = false;
  bool keys = false;  // say which there are
};

struct WatchedProcess {
  pid_t pid = 0;
  const LedgerFile* file = nullptr;
  const Recent* recent = nullptr;
  const GrowingGroups* growing = nullptr;
  bool ended = false;
};

// One process: its totals, and its groups by call stack. `groups`: sorted; those that are shown
// have to be known to the names.
std::string process_view(const WatchedProcess&, const std::vector<GroupSample>& groups, SortBy,
                         const PlaceNames&, const ViewSize&);
// Lines above the groups, for whoever has to know how many fit.
std::size_t process_view_head(const WatchedProcess&, const ViewSize&);

// One line for each process.
std::string processes_view(const std::vector<WatchedProcess>&, SortBy, const ViewSize&);

}  // namespace cuwarden
