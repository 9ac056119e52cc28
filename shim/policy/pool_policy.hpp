// The meaning of CUWARDEN_POOL for requests that the driver would serve with a waste.
#pragma once

#include <string>

#include "runtime_hooks/serving/serving_pools.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Returns the moments at which the pool serves requests under this value of CUWARDEN_POOL.
serving::PoolUse pool_use(PoolMode) noexcept;

// True if MPI, UCX or NVSHMEM is loaded. They give device memory to other processes by handles,
// which the driver makes only of memory that it served itself, not of the pool's.
bool shares_memory_with_processes() noexcept;

// Returns the longest pause of the program for meshing, in nanoseconds; 0 if the pool's memory must
// not be moved.
std::uint64_t mesh_pause_ns(const Settings&) noexcept;
// True if a library is loaded that shares device memory with other processes, or one that lets
// network cards, disks or video engines reach device memory. No call of the driver shows when they
// do.
bool reaches_memory_unseen() noexcept;
// Returns the names of the loaded libraries that reach memory without the driver's calls, as a list
// for people; empty if there is none. May throw std::bad_alloc.
std::string libraries_that_reach_memory();

}  // namespace cuwarden::shim
