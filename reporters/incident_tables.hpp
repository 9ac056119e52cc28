// The report's incidents: each with its verdict, who held what, and the account of that moment.
#pragma once

#include <vector>

#include "reporters/call_frames.hpp"
#include "reporters/json_stream.hpp"
#include "reporters/verdicts.hpp"

namespace cuwarden {

// In the order in which they happened.
std::vector<IncidentCase> all_incidents(const ledger::Reader&);
void add_stacks(const ledger::Reader&, const std::vector<IncidentCase>&, CallFrames&);

// Other processes that held memory of a device when a request was refused.
void write_device_processes(const ledger::Reader&, const std::vector<IncidentCase>&, JsonStream&);
// Rows of `accounts`.
void write_incident_accounts(const std::vector<IncidentCase>&, JsonStream&);
// The tables incidents, incident_facts, rungs and incident_holders.
void write_incidents(const ledger::Reader&, const std::vector<IncidentCase>&, const CallFrames&,
                     JsonStream&);

}  // namespace cuwarden
