// Makes the report's tables about the parts of each device's memory, and about memory that is held
// but cannot be used, from a ledger. Each put_*() passes each row of its table to its last
// parameter.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "reporters/model/fragmentation.hpp"
#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "reporters/tables/groups/implicit_groups.hpp"
#include "reporters/tables/groups/library_reserves.hpp"
#include "reporters/tables/slabs.hpp"
#include "reporters/verdicts/incident_case.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Slabs of the driver, and bytes lost to rounding, by CUDA ordinal, as find_fragmentation() returns
// them.
using Fragmentations = std::map<std::int32_t, Fragmentation>;

// Returns the bytes of each device's contexts at the device's last reading (cuMemGetInfo), as the
// item `context` of the report's table `accounts` has them. Devices that were never read are left
// out. The series are those of all_series(): the live bytes of each kind of memory on each device.
ContextBytes context_bytes(const ledger::Reader&, const std::vector<ledger::SeriesView>&,
                           const Fragmentations&);
// Passes the parts of each device's used bytes, at its last reading and at each refused request of
// device memory, to the last parameter as rows of the report. Devices that were not read at such a
// moment have no rows for it. The series are those of all_series(): the live bytes of each kind of
// memory on each device.
void put_accounts(const ledger::Reader&, const std::vector<ledger::SeriesView>&,
                  const Fragmentations&, const LibrariesImplicit&, const std::vector<IncidentCase>&,
                  Put<model::AccountItem>);
// Calls the last parameter, with a row of the report, for each device in Fragmentations: its slabs,
// and the bytes that other requests cannot use. The series are those of all_series(): the live
// bytes of each kind of memory on each device.
void put_fragmentation(const ledger::Reader&, const std::vector<ledger::SeriesView>&,
                       const Fragmentations&, Put<model::Fragmentation>);
// Calls the last parameter, with a row of the report, for each slab (2 MiB page of small requests)
// with a live piece: its address, size class and live pieces.
void put_slab_map(const Fragmentations&, Put<model::Slab>);
// Calls the last parameter, with a row of the report, for each group of allocations (stack,
// function, kind, device) that has live pieces in slabs. The groups' stacks must have been added to
// the CallFrames before; rows of other stacks name no stack.
void put_slab_holders(const ledger::Reader&, const Fragmentations&, const CallFrames&,
                      Put<model::SlabHolder>);

}  // namespace cuwarden
