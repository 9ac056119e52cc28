// Facts of an incident that the driver does not tell: what the ledger's live tables show at that
// moment, the host's limits, and who else uses the device.
#pragma once

#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/rescue/incident.hpp"

namespace cuwarden::shim {

// Fills the incident in. `live` shows what is allocated now, devices and names; nothing of
// incidents is read from it. Slabs and other processes, of which an incident knows sums alone, get
// their rows. Takes milliseconds, and more of a process with a million allocations. May throw
// bad_alloc.
void add_incident_facts(ledger::Writer&, const ledger::Reader& live, rescue::Incident&);

}  // namespace cuwarden::shim
