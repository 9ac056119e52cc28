// Memory that several processes see. Linear memory becomes shareable when a handle to it
// is first asked for: its pages move into a file in memory, at the same address.
#pragma once

#include <cstddef>

#include "tools/simulated_gpu/driver_headers.hpp"

namespace cuwarden::simulated_gpu {

// The descriptor of the file that holds [start, start + size) from now on; -1 on failure.
int share_pages(CUdeviceptr start, std::size_t size);
// The pages that begin here are the process's own again, before the device reuses them.
void unshare_pages(CUdeviceptr start, std::size_t size);

}  // namespace cuwarden::simulated_gpu
