// Memory that several processes see. Linear memory becomes shareable when a handle to it is first
// asked for: its pages move into a file in memory, at the same address.
#pragma once

#include <cstddef>

#include "tools/simulated_gpu/hardware/driver_headers.hpp"

namespace cuwarden::simulated_gpu {

// Moves the pages into a file and returns its descriptor, or that of an earlier call; -1 on
// failure.
int share_pages(CUdeviceptr start, std::size_t size);
// Makes the pages that begin here the process's own again, before the device reuses them.
void unshare_pages(CUdeviceptr start, std::size_t size);

}  // namespace cuwarden::simulated_gpu
