// The meaning of CUWARDEN_POOL for requests that the driver would serve with a waste.
#pragma once

#include <cstdint>

#include "runtime_hooks/serving/serving_pools.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

serving::PoolUse pool_use(PoolMode) noexcept;

// The longest pause for moving the pool's memory behind the program's addresses; 0: it stays.
std::uint64_t mesh_pause_ns(const Settings&) noexcept;

}  // namespace cuwarden::shim
