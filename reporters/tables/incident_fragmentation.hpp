// Makes the report's tables about slabs and rounding at the moments at which requests were refused
// (incidents), from a ledger. A slab is a 2 MiB page from which the driver cuts small requests.
// Each put_*() passes each row of its table to its last parameter.
#pragma once

#include <vector>

#include "reporters/model/fragmentation.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "reporters/verdicts/incident_case.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Calls the last parameter, with a row of the report, for each refused request of device memory:
// the bytes of the device that no other request could use at that moment. A request is left out if
// the device's slabs (2 MiB pages of small requests) were not looked at when it was refused.
void put_incident_fragmentation(const ledger::Reader&, const std::vector<IncidentCase>&,
                                Put<model::IncidentFragmentation>);
// For each refused request, calls the last parameter with a row of the report for each size class
// of slabs (2 MiB pages of small requests) that the request's device then had.
void put_incident_slab_classes(const ledger::Reader&, const std::vector<IncidentCase>&,
                               Put<model::IncidentSlabClass>);
// For each refused request, calls the last parameter with a row of the report for each slab (2 MiB
// page of small requests) that the request's device then had. The ledger may list fewer slabs than
// there were, or none. The stacks must have been added by add_stacks() before; others are left out.
void put_incident_slab_map(const ledger::Reader&, const std::vector<IncidentCase>&,
                           const CallFrames&, Put<model::IncidentSlab>);

}  // namespace cuwarden
