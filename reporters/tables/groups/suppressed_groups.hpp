// Applies the user's suppressions (rules that exclude known leaks) to the leaks of a process.
#pragma once

#include <vector>

#include "reporters/model/memory.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "reporters/tables/groups/leak_groups.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Sets LeakGroup::is_suppressed of the groups that the user's rules exclude. Reads the rules from
// the file that CUWARDEN_SUPPRESSIONS named in the environment of the recorded process. Returns a
// row of the report for each rule in the file; none if there is no file or it cannot be read.
// CallFrames::name_all() must have been called.
std::vector<model::Suppression> suppress_groups(const ledger::Reader&, const CallFrames&,
                                                std::vector<LeakGroup>& groups);

}  // namespace cuwarden
