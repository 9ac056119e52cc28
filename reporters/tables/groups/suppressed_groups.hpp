// Applies the user's suppressions (rules that exclude known leaks) to the leaks of a process.
#pragma once

#include <vector>

#include "reporters/model/memory.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "reporters/tables/groups/leak_groups.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Sets LeakGroup::is_suppressed: true for the groups that the user's rules exclude, false for the
// others. Leaves groups with LeakGroup::released_by_context as they are. Reads the rules from the
// file that CUWARDEN_SUPPRESSIONS named in the environment of the recorded process.
//
// Returns a row of the report for each rule in the file, also for a rule that excludes no group. A
// malformed line has no row. Returns no rows if there is no file, or if the file cannot be read or
// is larger than 1 MiB. CallFrames::name_all() must have been called.
std::vector<model::Suppression> suppress_groups(const ledger::Reader&, const CallFrames&,
                                                std::vector<LeakGroup>& groups);

}  // namespace cuwarden
