// Makes simulated device memory visible to other processes. When the program first asks for an IPC
// handle of memory, its pages move into a file in memory (memfd), and keep their addresses.
#pragma once

#include <cstddef>

#include "tools/simulated_gpu/hardware/driver_headers.hpp"

namespace cuwarden::simulated_gpu {

// Moves the pages of `size` bytes from `start` into a file in memory. `size`: a multiple of 4 KiB.
// Returns the file's descriptor, which the caller must not close; if the pages were moved before,
// that of the earlier call. Returns -1 on failure. Callers hold the simulator's lock.
int share_pages(CUdeviceptr start, std::size_t size);
// Makes pages that share_pages() moved private to this process again, zeroed, and closes the file.
// To be called when the memory is freed. `start` and `size`: as given to share_pages(). Does
// nothing if the pages were not moved, or if the system has no memory.
void unshare_pages(CUdeviceptr start, std::size_t size);

}  // namespace cuwarden::simulated_gpu
