// Writes the output of `cuwarden top --json`: one JSON object, which top.schema.json describes.
#pragma once

#include <vector>

#include "reporters/files/output.hpp"
#include "tools/cuwarden/top/top_view.hpp"

namespace cuwarden {

// A process and its groups, each of which is all allocations with one call stack, kind of memory
// and device.
struct DescribedProcess {
  WatchedProcess process;
  std::vector<GroupSample> groups;  // in the order of the output; empty if no stacks are written
  // Returns the name of the code that allocates, by a group's id.
  std::function<CallSiteName(std::uint32_t)> name_of;
};

// Writes the JSON object to the output. `with_stacks`: if false, the object has no member "stacks",
// and DescribedProcess::groups and name_of are not used.
void write_top_json(const std::vector<DescribedProcess>&, bool with_stacks, Output&);

}  // namespace cuwarden
