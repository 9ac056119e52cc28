// The output of `top --json`: one `cuwarden.top/1` object (top.schema.json).
#pragma once

#include <vector>

#include "reporters/files/output.hpp"
#include "tools/cuwarden/top/top_view.hpp"

namespace cuwarden {

// A process and its groups of allocations.
struct DescribedProcess {
  WatchedProcess process;
  std::vector<GroupSample> groups;  // sorted
  std::function<CallSiteName(std::uint32_t)> name_of;
};

// Writes the object. `with_stacks`: if false, the table of stacks is left out.
void write_top_json(const std::vector<DescribedProcess>&, bool with_stacks, Output&);

}  // namespace cuwarden
