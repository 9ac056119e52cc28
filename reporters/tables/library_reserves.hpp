// Makes the report's table about memory that libraries keep for themselves from a ledger.
#pragma once

#include <vector>

#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/call_frames.hpp"
#include "reporters/tables/leak_groups.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Passes a row of the report to the last parameter for each reserve of a library (memory that a
// library keeps for itself), by device and by file of the library: largest first. The groups are
// those of leak_groups() or live_groups(), whose stacks must have been added to the CallFrames.
void put_library_reserves(const ledger::Reader&, const std::vector<LeakGroup>&, const CallFrames&,
                          Put<model::LibraryReserve>);

}  // namespace cuwarden
