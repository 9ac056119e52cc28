// Makes the report's table about memory that libraries keep for themselves from a ledger.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "reporters/tables/groups/leak_groups.hpp"
#include "runtime_hooks/ledger/format/implicit_bytes.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Returns the id of the module that asked for the memory of the stack: of the innermost one that is
// not is_between_cuda_and_asker(). 0: unknown. Does not need CallFrames::name_all().
std::uint32_t asker_of(const ledger::Reader&, StackId, const CallFrames&);

// Calls the last parameter, with a row of the report, for each reserve of a library (memory that a
// library keeps for itself), by device and by file of the library: largest first. The groups are
// those of leak_groups() or live_groups(), whose stacks must have been added to the CallFrames.
void put_library_reserves(const ledger::Reader&, const std::vector<LeakGroup>&, const CallFrames&,
                          Put<model::LibraryReserve>);

// Implicit memory (device memory that no allocation call asked for) that the driver took in calls
// which libraries such as NCCL made, by CUDA ordinal. Only the bytes of streams, modules and graphs
// are set.
using LibrariesImplicit = std::map<std::int32_t, ledger::ImplicitBytes>;
// Returns the implicit memory that the driver took in calls which libraries made, for all libraries
// that have a row for device memory in library_reserves.def. The groups must be those of
// implicit_groups(), and their stacks must have been added to the CallFrames.
LibrariesImplicit implicit_of_libraries(const ledger::Reader&, const std::vector<LeakGroup>&,
                                        const CallFrames&);

}  // namespace cuwarden
