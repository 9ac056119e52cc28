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

// Returns the report's name of a rung (one of cuwarden's attempts to serve a refused request), such
// as "trim" or "spill".
std::string_view rung_name(ledger::Rung);
// Returns the report's name of the thing that a refused call needed memory for, such as "memory"
// for an allocation, or "context".
std::string_view asked_name(ledger::Asked);
// Returns all incidents of the ledger, sorted by the time of the first refusal of each. An incident
// is a request that was refused for lack of memory, or a context that the compute mode refused. It
// is left out if the ledger's row of its group (stack, function, kind, device) cannot be read.
std::vector<IncidentCase> all_incidents(const ledger::Reader&);
// Adds call stacks to the CallFrames: those of the refused requests, and those of the allocations
// that the ledger lists, at the refusals, as holders of memory or as pieces of slabs (2 MiB pages
// of small requests).
void add_stacks(const ledger::Reader&, const std::vector<IncidentCase>&, CallFrames&);

// For each refused request, calls the last parameter with a row of the report for each other
// process that then used the request's device. The processes are those that NVML listed, or that
// had the device's file open.
void put_device_processes(const ledger::Reader&, const std::vector<IncidentCase>&,
                          Put<model::DeviceProcess>);
// Judges the cause of each refused request, and passes a row of the report with the verdict to the
// last parameter.
void put_incidents(const ledger::Reader&, const std::vector<IncidentCase>&, const CallFrames&,
                   Put<model::Incident>);
// For each refused request, calls the last parameter with a row of the report for each figure that
// was known at that moment, such as the device's free bytes.
void put_incident_facts(const std::vector<IncidentCase>&, Put<model::IncidentFact>);
// Calls the last parameter, with a row of the report, for each rung (attempt to serve a refused
// request) that was tried for the first request of an incident.
void put_rungs(const ledger::Reader&, const std::vector<IncidentCase>&, Put<model::Rung>);
// Calls the last parameter, with a row of the report, for each rung (attempt to serve a refused
// request) that was left out at an incident's first refusal. A rung whose turn never came, because
// the rescue had ended before, has no row. The row has the reason. If that is a setting, it has the
// setting's name; the Reader tells which of the two settings of meshing is off.
void put_rungs_left_out(const ledger::Reader&, const std::vector<IncidentCase>&,
                        Put<model::RungLeftOut>);
// For each refused request, calls the last parameter with a row of the report for each of its top
// holders of memory. These are groups of allocations (stack, function, kind, device) that then held
// most memory, or locked most in slabs. Rows name no stack that add_stacks() has not added.
void put_incident_holders(const ledger::Reader&, const std::vector<IncidentCase>&,
                          const CallFrames&, Put<model::IncidentHolder>);

}  // namespace cuwarden
