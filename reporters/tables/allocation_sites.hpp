// Makes the report's table of the call stacks that allocated most bytes over the whole run, freed
// or not. The table shows where memory is allocated and freed again all the time.
#pragma once

#include <cstddef>
#include <vector>

#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Most rows of the report's table of the call stacks that allocated most bytes over the run. The
// number is limited because naming the functions of call stacks takes time at the end of the
// process.
inline constexpr std::size_t most_allocation_sites = 200;

// Returns copies of the ledger's groups (allocations with the same call stack, function, kind and
// device) that allocated most bytes over the run, most bytes first. Returns at most
// most_allocation_sites groups. Implicit memory and blocks of frameworks are left out.
std::vector<ledger::GroupView> most_allocating(const ledger::Reader&);

// Calls the last parameter, with a row of the report, for each of the given groups, which are the
// result of most_allocating(). The groups' call stacks must have been added to the CallFrames
// before; rows of other stacks name no stack.
void put_allocation_sites(const ledger::Reader&, const std::vector<ledger::GroupView>&,
                          const CallFrames&, Put<model::AllocationSite>);

}  // namespace cuwarden
