// Makes the report's table about reserves of libraries from a ledger: memory that a library keeps
// for itself, such as buffers and caches.
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

// Returns the id of the module that asked for the memory of an allocation with this call stack: the
// innermost module on the stack that does more than pass requests on to CUDA
// (is_between_cuda_and_asker()). 0: unknown. The stack must have been added to the CallFrames.
std::uint32_t asker_of(const ledger::Reader&, StackId, const CallFrames&);

// Calls the last parameter, with a row of the report, for each reserve of a library (memory that a
// library keeps for itself): one row by device and by file of the library, largest first. The
// groups are the result of leak_groups() or live_groups(). Their stacks must have been added to the
// CallFrames.
void put_library_reserves(const ledger::Reader&, const std::vector<LeakGroup>&, const CallFrames&,
                          Put<model::LibraryReserve>);

// Implicit memory (device memory that no allocation call asked for) for which libraries such as
// NCCL are responsible, by CUDA ordinal. Only the bytes of streams, modules and graphs are set.
using LibrariesImplicit = std::map<std::int32_t, ledger::ImplicitBytes>;
// Returns the implicit memory that the driver took in calls that libraries made. Libraries count if
// they have a row for device memory in library_reserves.def. The groups are the result of
// implicit_groups(). Their stacks must have been added to the CallFrames.
LibrariesImplicit implicit_of_libraries(const ledger::Reader&, const std::vector<LeakGroup>&,
                                        const CallFrames&);
// Returns the implicit memory that the driver took in calls that libraries made, in a process that
// still runs. Libraries count if they have a row for device memory in library_reserves.def. Takes
// some milliseconds for a ledger of 100,000 call stacks, or 0.2 s if all of them made streams, code
// or graphs.
LibrariesImplicit live_implicit_of_libraries(const ledger::Reader&);

}  // namespace cuwarden
