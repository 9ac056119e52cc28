// Linear device memory and its account: slabs, pages, trimming, release with a context.
// Callers hold the lock.
#pragma once

#include "tools/simulated_gpu/state.hpp"

namespace cuwarden::simulated_gpu {

// Charges the device, after trimming what the driver hoards if need be.
bool charge_device(Device& device, std::size_t bytes);
// The device maps `bytes` of the host's memory, or not any more. False: no room for the tables.
bool map_host(Device& device, std::size_t bytes);
void unmap_host(Device& device, std::size_t bytes);
// Free memory of pools and of launched graphs goes back to the device.
void trim_device(Device& device);

// 0 when out of memory. Alignment is that of slabs (512 bytes) or pages.
CUdeviceptr take_linear(Context& context, std::size_t size, bool& in_slab, std::size_t& held);
// Gives back what the range took from its device, and removes it from the table.
void release_range(const Range& range);
// All memory that belongs to the context.
void release_context_memory(Context& context);

// What a local-memory need of `bytes` per thread takes on the whole device beyond the default.
std::size_t local_memory_cost(std::size_t bytes);

}  // namespace cuwarden::simulated_gpu
