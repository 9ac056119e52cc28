// What the setting CUWARDEN_POOL means for requests that the driver would serve with a waste.
#pragma once

#include "runtime_hooks/families/recorder.hpp"
#include "shim/settings.hpp"

namespace cuwarden::shim {

families::PoolUse pool_use(PoolMode) noexcept;

// MPI, UCX, NVSHMEM: they give device memory to other processes by handles that the driver makes of
// its own memory alone.
bool shares_memory_with_processes() noexcept;

}  // namespace cuwarden::shim
