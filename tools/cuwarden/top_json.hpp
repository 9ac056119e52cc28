// What `top --json` says: one `cuwarden.top/1` object (top.schema.json).
#pragma once

#include <vector>

#include "reporters/files/output.hpp"
#include "tools/cuwarden/top_view.hpp"

namespace cuwarden {

// A process, and where its allocations are made.
struct DescribedProcess {
  WatchedProcess process;
  std::vector<GroupSample> groups;  // sorted
  std::function<PlaceName(std::uint32_t)> name_of;
};

// `with_stacks`: false leaves the table of stacks out.
void write_top_json(const std::vector<DescribedProcess>&, bool with_stacks, Output&);

}  // namespace cuwarden
