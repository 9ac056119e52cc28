// The meaning of CUWARDEN_POOL for requests that the driver would serve with a waste.
#pragma once

#include <cstdint>

#include "runtime_hooks/serving/serving_pools.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Returns the moments at which the pool serves requests under this value of CUWARDEN_POOL.
serving::PoolUse pool_use(PoolMode) noexcept;

// Returns the longest pause of the program for meshing, in nanoseconds; 0 if the pool's memory must
// not be moved.
std::uint64_t mesh_pause_ns(const Settings&) noexcept;

}  // namespace cuwarden::shim
