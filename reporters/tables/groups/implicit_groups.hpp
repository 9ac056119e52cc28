// Streams, modules and executable graphs of the process by call stack, with the device memory that
// the driver took for them without being asked for memory.
#pragma once

#include <vector>

#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "reporters/tables/groups/leak_groups.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Moves the groups of implicit memory out of the leak groups into the result. Groups that grow are
// leaks like others, and stay among the leak groups, too, but for code that first launches loaded.
// Adds groups of which no object is live.
// The largest come first, by bytes, then by count.
std::vector<LeakGroup> implicit_groups(const ledger::Reader&, std::vector<LeakGroup>& leaks);
// Calls the last parameter, with a row of the report, for each group. CallFrames::name_all() must
// have been called.
void put_implicit_groups(const ledger::Reader&, const std::vector<LeakGroup>&, const CallFrames&,
                         Put<model::ImplicitGroup>);

}  // namespace cuwarden
