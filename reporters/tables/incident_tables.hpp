// Makes the report's tables about refused requests (incidents) from a ledger: incidents with their
// verdicts, and the holders of memory at those moments. Each put_*() passes each row of its table
// to its last parameter.
#pragma once

#include <string_view>
#include <vector>

#include "reporters/model/incidents.hpp"
#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "reporters/verdicts/verdicts.hpp"

namespace cuwarden {

// Returns the report's name of the rung, one of cuwarden's attempts to serve a refused request,
// such as "trim" or "spill".
std::string_view rung_name(ledger::Rung);
// Returns the report's name of the thing that a refused call asked for, such as "memory" or
// "context".
std::string_view asked_name(ledger::Asked);
// Returns all incidents (requests that were refused for lack of memory) of the ledger, by the time
// of their first refusals. Incidents are left out if the group of allocations (stack, function,
// kind, device) of their request cannot be read.
std::vector<IncidentCase> all_incidents(const ledger::Reader&);
// Adds the call stacks of the refused requests, and of the holders of memory that the ledger lists
// for the refusals, to the report's stacks (the last parameter).
void add_stacks(const ledger::Reader&, const std::vector<IncidentCase>&, CallFrames&);

// Calls the last parameter, with a row of the report, for each refused request and each other
// process that held memory of its device at the refusal. The processes are those that NVML listed.
void put_device_processes(const ledger::Reader&, const std::vector<IncidentCase>&,
                          Put<model::DeviceProcess>);
// Judges the cause of each refused request, and passes a row of the report with the verdict to the
// last parameter.
void put_incidents(const ledger::Reader&, const std::vector<IncidentCase>&, const CallFrames&,
                   Put<model::Incident>);
// Calls the last parameter, with a row of the report, for each refused request and each number that
// was known at its refusal, such as the device's free bytes.
void put_incident_facts(const std::vector<IncidentCase>&, Put<model::IncidentFact>);
// Calls the last parameter, with a row of the report, for each attempt (rung) by which cuwarden
// tried to serve each incident's first refused request.
void put_rungs(const ledger::Reader&, const std::vector<IncidentCase>&, Put<model::Rung>);
// Calls the last parameter, with a row of the report, for each rung that was left out for the first
// refused request of an incident, with the reason. The reader tells the settings that were in
// force.
void put_rungs_left_out(const ledger::Reader&, const std::vector<IncidentCase>&,
                        Put<model::RungLeftOut>);
// Calls the last parameter, with a row of the report, for each refused request and each group of
// allocations (stack, function, kind, device) among its holders. These held most memory, or locked
// most memory in slabs, at the refusal. Rows name no stack that add_stacks() has not added.
void put_incident_holders(const ledger::Reader&, const std::vector<IncidentCase>&,
                          const CallFrames&, Put<model::IncidentHolder>);

}  // namespace cuwarden
