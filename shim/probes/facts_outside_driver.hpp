// Facts about an incident (a request that was refused for lack of memory) that the CUDA driver does
// not tell: live allocations, limits of the host, and other processes on the device.
#pragma once

#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/rescue/incident.hpp"

namespace cuwarden::shim {

// Adds facts from outside CUDA to the incident (a refused request): the host's memory and its
// limits, locked memory (free, but in partly live slabs of the driver), implicit memory with
// libraries' part of it, growth of live allocations, PyTorch's segments, and MPS's limit. For a
// request larger than a MIG slice, also adds the whole device's memory. Asks NVML for other
// processes only if they seem to use the device, and for free memory only if a request for a
// context failed. With a driver of CUDA 13.4 or later, asks NVML for the cgroup's limit on the
// device's memory if the driver has answered CUDA_ERROR_OUT_OF_MEMORY. `live`: a reader of this
// process's ledger, opened after the request was refused. Writes a row for each slab, each class of
// slabs and each other process to the ledger `Writer`, because the incident holds their sums only.
// Subtracts bytes of other processes that the ledger counts as memory of this process's first
// context on the device (subtract_from_context()). Takes milliseconds, or longer in a process with
// a million allocations. May throw std::bad_alloc; facts that were added until then stay.
void add_incident_facts(ledger::Writer&, const ledger::Reader& live, rescue::Incident&);

}  // namespace cuwarden::shim
