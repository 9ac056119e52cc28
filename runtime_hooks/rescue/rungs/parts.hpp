// Parts of the process that a rescue works with.
#pragma once

#include "runtime_hooks/core/host_process.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/serving/serving_pools.hpp"
#include "runtime_hooks/tracking/call_sites.hpp"

namespace cuwarden::rescue {

// References to the objects that a rescue works with: the ledger, cuwarden's pools, the devices and
// others. All of them outlive this object.
struct Parts {
  HostProcess& process;                 // answers questions about the program, starts threads
  ledger::Writer& ledger;               // the ledger, which gets incidents and the rungs tried
  const driver::RealDriver& real;       // libcuda's own functions, without hooks
  tracking::DeviceQueries& queries;     // tells the current context, and sizes of devices
  tracking::LiveContexts& contexts;     // the process's contexts that have not ended
  tracking::Captures& captures;         // stream captures in progress
  tracking::MemoryPools& memory_pools;  // CUDA's memory pools (CUmemoryPool)
  tracking::DeviceReadings& readings;   // reads how much of a device's memory is in use
  tracking::CallSites& sites;           // walks the callers' stacks
  // cuwarden's own pools, meshing, and spilling (host memory behind device addresses).
  serving::ServingPools& pools;
  serving::Notices& notices;  // tells the user of waits and failures
};

}  // namespace cuwarden::rescue
