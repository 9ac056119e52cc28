// Reads the report's tables about the parts of a device's memory from a ledger, and about what of
// it is held but cannot be used.
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

// Slabs and rounding by device ordinal.
using Fragmentations = std::map<std::int32_t, Fragmentation>;

void put_accounts(const ledger::Reader&, const std::vector<ledger::SeriesView>&,
                  const Fragmentations&, const std::vector<IncidentCase>&, Put<model::AccountItem>);
void put_fragmentation(const ledger::Reader&, const std::vector<ledger::SeriesView>&,
                       const Fragmentations&, Put<model::Fragmentation>);
void put_slab_map(const Fragmentations&, Put<model::Slab>);
void put_slab_holders(const ledger::Reader&, const Fragmentations&, const CallFrames&,
                      Put<model::SlabHolder>);

}  // namespace cuwarden
