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
#include "reporters/tables/call_frames.hpp"
#include "reporters/tables/slabs.hpp"
#include "reporters/verdicts/incident_case.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Slabs of the driver, and bytes lost to rounding, by device ordinal. Made by find_fragmentation().
using Fragmentations = std::map<std::int32_t, Fragmentation>;

// Passes the parts of each device's used bytes, at its last reading and at each refused request, to
// the last parameter as rows of the report.
// The series give live bytes by kind and device, as made by all_series().
void put_accounts(const ledger::Reader&, const std::vector<ledger::SeriesView>&,
                  const Fragmentations&, const std::vector<IncidentCase>&, Put<model::AccountItem>);
// Passes a row of the report to the last parameter for each device: its slabs, and the bytes that
// other requests cannot use. The series are those of all_series().
void put_fragmentation(const ledger::Reader&, const std::vector<ledger::SeriesView>&,
                       const Fragmentations&, Put<model::Fragmentation>);
// Passes a row of the report to the last parameter for each slab.
void put_slab_map(const Fragmentations&, Put<model::Slab>);
// Passes a row of the report to the last parameter for each group of allocations that has pieces in
// slabs. Stacks must have been added to the CallFrames before.
void put_slab_holders(const ledger::Reader&, const Fragmentations&, const CallFrames&,
                      Put<model::SlabHolder>);

}  // namespace cuwarden
