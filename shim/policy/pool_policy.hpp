// Translates the settings CUWARDEN_POOL and CUWARDEN_MESH for the pool, which serves requests in
// the driver's stead where the driver would waste memory.
#pragma once

#include <cstdint>

#include "runtime_hooks/serving/serving_pools.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Returns when the pool serves new requests under this value of CUWARDEN_POOL. `on`: from the
// start. `automatic`: once the driver's slabs lock too much memory. All other values: never.
serving::PoolUse pool_use(PoolMode) noexcept;

// Returns the longest time in nanoseconds for which the program is paused while the pool's memory
// is moved (meshing); 0 if CUWARDEN_MESH or CUWARDEN_POOL forbids moving.
std::uint64_t mesh_pause_ns(const Settings&) noexcept;

}  // namespace cuwarden::shim
