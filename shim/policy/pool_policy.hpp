// What the setting CUWARDEN_POOL means for requests that the driver would serve with a waste.
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
// Those, and what has network cards, disks and video engines reach device memory by addresses that
// it was told of: no call says when.
bool reaches_memory_unseen() noexcept;
// Their names, as a list to be read. May throw std::bad_alloc.
std::string libraries_that_reach_memory();

}  // namespace cuwarden::shim
