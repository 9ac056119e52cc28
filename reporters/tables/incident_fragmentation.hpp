// Reads the report's tables about slabs and rounding at the moments of incidents from a ledger.
#pragma once

#include <vector>

#include "reporters/model/fragmentation.hpp"
#include "reporters/model/put.hpp"
#include "reporters/verdicts/incident_case.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

void put_incident_fragmentation(const ledger::Reader&, const std::vector<IncidentCase>&,
                                Put<model::IncidentFragmentation>);
void put_incident_slab_classes(const ledger::Reader&, const std::vector<IncidentCase>&,
                               Put<model::IncidentSlabClass>);
void put_incident_slab_map(const ledger::Reader&, const std::vector<IncidentCase>&,
                           Put<model::IncidentSlab>);

}  // namespace cuwarden
