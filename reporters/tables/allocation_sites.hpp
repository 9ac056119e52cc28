// Makes the report's table of the call stacks that allocated most bytes over the whole run, freed
// or not. They show where memory comes and goes all the time.
#pragma once

#include <cstddef>
#include <vector>

#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Number of groups of allocations of which a report tells all bytes that they ever allocated. Their
// call stacks have to be named when the process ends, which takes time.
inline constexpr std::size_t most_allocation_sites = 200;

// Returns copies of the groups (allocations with the same call stack, function, kind and device)
// that allocated most bytes over the run, most bytes first: at most most_allocation_sites. Implicit
// memory and blocks of frameworks are left out.
std::vector<ledger::GroupView> most_allocating(const ledger::Reader&);

// Calls the last parameter, with a row of the report, for each of the groups. Their call stacks
// were added to the frames before.
void put_allocation_sites(const ledger::Reader&, const std::vector<ledger::GroupView>&,
                          const CallFrames&, Put<model::AllocationSite>);

}  // namespace cuwarden
