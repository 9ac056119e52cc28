// What the driver's slabs and its rounding kept at the moments of incidents.
#pragma once

#include <vector>

#include "reporters/incident_case.hpp"
#include "reporters/json_stream.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

void write_incident_fragmentation(const ledger::Reader&, const std::vector<IncidentCase>&,
                                  JsonStream&);

}  // namespace cuwarden
