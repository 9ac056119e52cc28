// Makes simulated device memory visible to other processes. When the program first asks for an IPC
// handle of an allocation, the pages of the allocation move into a file in memory (memfd), and keep
// their addresses.
#pragma once

#include <cstddef>

#include "tools/simulated_gpu/hardware/driver_headers.hpp"

namespace cuwarden::simulated_gpu {

// Moves the pages of `size` bytes from `start` into a file in memory (memfd), so that other
// processes can map them; addresses and contents stay. `start` and `size`: multiples of 4 KiB.
// Returns the file's descriptor, which the caller must not close; a later call for the same start
// returns the same one. Returns -1, and moves nothing, on failure. Callers hold Simulator::mutex.
int share_pages(CUdeviceptr start, std::size_t size);
// Undoes share_pages(): makes the pages private to this process again, filled with zeros, and
// closes the file. Called when the memory is freed. `start` and `size`: as given to share_pages().
// Does nothing if the pages were not moved, or if the system has no memory. Callers hold
// Simulator::mutex.
void unshare_pages(CUdeviceptr start, std::size_t size);

}  // namespace cuwarden::simulated_gpu
