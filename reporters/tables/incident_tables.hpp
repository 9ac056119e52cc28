// Reads the report's tables about refused requests from a ledger: incidents with their verdicts,
// and the holders of memory at those moments.
#pragma once

#include <vector>

#include "reporters/model/incidents.hpp"
#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/call_frames.hpp"
#include "reporters/verdicts/verdicts.hpp"

namespace cuwarden {

// Returns all incidents of the ledger, in the order in which they happened.
std::vector<IncidentCase> all_incidents(const ledger::Reader&);
// Adds the stacks that the incidents refer to.
void add_stacks(const ledger::Reader&, const std::vector<IncidentCase>&, CallFrames&);

// Lists other processes that held memory of a device when a request was refused.
void put_device_processes(const ledger::Reader&, const std::vector<IncidentCase>&,
                          Put<model::DeviceProcess>);
void put_incidents(const ledger::Reader&, const std::vector<IncidentCase>&, const CallFrames&,
                   Put<model::Incident>);
void put_incident_facts(const std::vector<IncidentCase>&, Put<model::IncidentFact>);
void put_rungs(const ledger::Reader&, const std::vector<IncidentCase>&, Put<model::Rung>);
void put_incident_holders(const ledger::Reader&, const std::vector<IncidentCase>&,
                          const CallFrames&, Put<model::IncidentHolder>);

}  // namespace cuwarden
