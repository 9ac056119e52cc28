// The meaning of CUWARDEN_POOL for requests that the driver would serve with a waste.
#pragma once

#include <string>

#include "runtime_hooks/serving/serving_pools.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

serving::PoolUse pool_use(PoolMode) noexcept;

// MPI, UCX, NVSHMEM: they give device memory to other processes by handles that the driver makes of
// its own memory alone.
bool shares_memory_with_processes() noexcept;

// The longest pause for moving the pool's memory behind the program's addresses; 0: it stays.
std::uint64_t mesh_pause_ns(const Settings&) noexcept;
// Returns true if such a library is loaded, or one that has network cards, disks or video engines
// reach device memory by addresses that they were told of: no call shows when they do.
bool reaches_memory_unseen() noexcept;
// Returns the names of the loaded libraries that reach memory without the driver's calls, as a list
// for people; empty if there is none. May throw std::bad_alloc.
std::string libraries_that_reach_memory();

}  // namespace cuwarden::shim
