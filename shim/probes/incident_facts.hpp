// What is known of an incident beside what the driver says: what the ledger shows of that moment,
// the host's limits, and who else uses the device.
#pragma once

#include "reporters/incident_case.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::shim {

// Takes milliseconds, and more of a process with a million allocations. May throw bad_alloc.
void add_incident_facts(ledger::Writer&, const ledger::Reader&, const IncidentCase&);

}  // namespace cuwarden::shim
