// The text that `top` shows.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "tools/cuwarden/top/top_names.hpp"
#include "tools/cuwarden/top/top_sample.hpp"

namespace cuwarden {

struct ViewSize {
  std::size_t columns = 0;  // width in letters; 0: as wide as the text
  std::size_t rows = 0;     // number of groups or processes that are shown at most; 0: all
  bool colour = false;
  bool keys = false;  // true: a line lists the keys
};

// A process that `top` shows. The pointers are never null.
struct WatchedProcess {
  pid_t pid = 0;
  const ledger::Reader* reader = nullptr;
  const Recent* recent = nullptr;
  const GrowingGroups* growing = nullptr;
  bool ended = false;
};

// Returns the view of one process: its totals and its groups. `groups`: in the order in which they
// are shown. `name_of`: returns the name of a group's code by the group's id.
std::string process_view(const WatchedProcess&, const std::vector<GroupSample>& groups, SortBy,
                         const std::function<CallSiteName(std::uint32_t)>& name_of,
                         const ViewSize&);
// Returns the number of lines above the groups; the caller works out from it how many groups fit.
std::size_t process_view_head(const WatchedProcess&, const ViewSize&);

// Returns the view of several processes, one line for each.
std::string processes_view(const std::vector<WatchedProcess>&, SortBy, const ViewSize&);

}  // namespace cuwarden
