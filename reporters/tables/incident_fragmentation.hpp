// Makes the report's tables about slabs and rounding at the moments of refused requests (incidents)
// from a ledger. Each put_*() passes each row of its table to its last parameter.
#pragma once

#include <vector>

#include "reporters/model/fragmentation.hpp"
#include "reporters/model/put.hpp"
#include "reporters/verdicts/incident_case.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Calls the last parameter, with a row of the report, for each refused request of device memory:
// the bytes of the device that no other request could use at the refusal. Requests at whose refusal
// the slabs were not looked at are left out.
void put_incident_fragmentation(const ledger::Reader&, const std::vector<IncidentCase>&,
                                Put<model::IncidentFragmentation>);
// Calls the last parameter, with a row of the report, for each refused request and each size class
// of the slabs that its device had at the refusal.
void put_incident_slab_classes(const ledger::Reader&, const std::vector<IncidentCase>&,
                               Put<model::IncidentSlabClass>);
// Calls the last parameter, with a row of the report, for each refused request and each slab of its
// device at the refusal. The ledger may list fewer slabs than there were, or none.
void put_incident_slab_map(const ledger::Reader&, const std::vector<IncidentCase>&,
                           Put<model::IncidentSlab>);

}  // namespace cuwarden
