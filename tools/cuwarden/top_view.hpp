// What `top` shows, as lines of text.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

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
  const ledger::Reader* reader = nullptr;
  const Recent* recent = nullptr;
  const GrowingGroups* growing = nullptr;
  bool ended = false;
};

// One process: its totals, and its groups by call stack. `groups`: sorted. `name_of`: the place of
// a group by its id.
std::string process_view(const WatchedProcess&, const std::vector<GroupSample>& groups, SortBy,
                         const std::function<PlaceName(std::uint32_t)>& name_of, const ViewSize&);
// Lines above the groups, for whoever has to know how many fit.
std::size_t process_view_head(const WatchedProcess&, const ViewSize&);

// One line for each process.
std::string processes_view(const std::vector<WatchedProcess>&, SortBy, const ViewSize&);

}  // namespace cuwarden
