// Translates the settings CUWARDEN_POOL, CUWARDEN_MESH and CUWARDEN_SPILL for the pool, which
// serves requests in the driver's stead where the driver would waste memory.
#pragma once

#include <cstdint>

#include "runtime_hooks/pool/spill.hpp"
#include "runtime_hooks/serving/serving_pools.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Returns when the pool serves new requests instead of the driver, under this value of
// CUWARDEN_POOL. `on`: from the start. `automatic`: once too much memory is locked: free, but in
// partly live slabs (2 MiB units) of the driver. All other values: never.
serving::PoolUse pool_use(PoolMode) noexcept;

// Returns the value of CUWARDEN_MESH_PAUSE in nanoseconds: the longest time for which the program's
// work on devices may be paused to move the pool's memory (meshing), in all for one refused
// request. 0 with CUWARDEN_MESH=off, and if CUWARDEN_POOL is `off` or `rescue`: then nothing is
// moved.
std::uint64_t mesh_pause_ns(const Settings&) noexcept;

// Returns the limits of spilling (host memory behind device pointers) by CUWARDEN_SPILL: most bytes
// of host memory for all spilled requests together, and the bytes by which cuMemGetInfo shows each
// device larger. These bytes are 0 without `:visible`, and no more than the host memory that is
// left now. A percentage is one of the machine's RAM. Both are 0 (no spilling) with
// CUWARDEN_SPILL=0 or CUWARDEN_POOL=off, or if the RAM is unknown and CUWARDEN_SPILL is a
// percentage.
pool::SpillSettings spill_settings(const Settings&) noexcept;

}  // namespace cuwarden::shim
