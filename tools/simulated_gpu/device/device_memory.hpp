// Linear device memory and its account: slabs, pages, trimming, release with a context. Callers
// hold the simulator's lock.
#pragma once

#include "tools/simulated_gpu/device/state.hpp"

namespace cuwarden::simulated_gpu {

// Charges the device for `bytes`. If there is no room, first trims the memory that the driver
// hoards. Returns false if there is still none.
bool charge_device(Device& device, std::size_t bytes);
// map_host() counts `bytes` of host memory that the device maps, and unmap_host() takes them off
// again. map_host() returns false if there is no room for the device's tables.
bool map_host(Device& device, std::size_t bytes);
void unmap_host(Device& device, std::size_t bytes);
// Gives free memory of pools and of launched graphs back to the device.
void trim_device(Device& device);

// Returns memory aligned to 512 bytes in a slab (`in_slab`), or to a page outside of slabs; 0 if
// out of memory. `held` gets the bytes that the device was charged for the range itself: 0 in a
// slab.
CUdeviceptr take_linear(Context& context, std::size_t size, bool& in_slab, std::size_t& held);
// Gives back what the range took from its device, and removes it from the table of ranges.
void release_range(const Range& range);
// Releases all memory that belongs to the context.
void release_context_memory(Context& context);

// Returns the bytes that the whole device needs for `bytes` of local memory per thread, beyond the
// default.
std::size_t local_memory_cost(std::size_t bytes);

}  // namespace cuwarden::simulated_gpu
