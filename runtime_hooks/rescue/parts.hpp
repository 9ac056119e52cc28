// Parts of the process that a rescue works with.
#pragma once

#include "runtime_hooks/core/host_process.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/serving/serving_pools.hpp"
#include "runtime_hooks/tracking/call_sites.hpp"

namespace cuwarden::rescue {

// References to what a rescue works with: the ledger, the pools, the devices and other objects of
// the recording. All of them outlive this object.
struct Parts {
  HostProcess& process;
  ledger::Writer& ledger;
  const driver::RealDriver& real;
  tracking::DeviceQueries& queries;
  tracking::LiveContexts& contexts;
  tracking::Captures& captures;
  tracking::MemoryPools& memory_pools;
  tracking::DeviceReadings& readings;
  tracking::CallSites& sites;
  serving::ServingPools& pools;
  serving::Notices& notices;
};

}  // namespace cuwarden::rescue
