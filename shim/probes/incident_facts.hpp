// Facts of an incident that the driver does not tell: what the ledger's live tables show at that
// moment, the host's limits, and who else uses the device.
#pragma once

#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/rescue/incident.hpp"

namespace cuwarden::shim {

// Adds facts from outside CUDA to the incident. `live`: a reader of the process's own ledger, for
// the live allocations, devices and names. Writes the rows of slabs and of other processes to the
// ledger, because an incident holds their sums only. Takes milliseconds, or longer in a process
// with a million allocations. May throw bad_alloc.
void add_incident_facts(ledger::Writer&, const ledger::Reader& live, rescue::Incident&);

}  // namespace cuwarden::shim
