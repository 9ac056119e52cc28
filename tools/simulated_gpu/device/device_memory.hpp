// Gives linear device memory out, as cuMemAlloc does, and takes it back. Counts the bytes that are
// used of each device. Callers hold the simulator's lock (Simulator::mutex).
#pragma once

#include "tools/simulated_gpu/device/state.hpp"

namespace cuwarden::simulated_gpu {

// Counts `bytes` of the device as used. If there is no room, gives unused memory of pools and
// graphs back to the device (trim_device()) and tries again. Returns false, and counts nothing, if
// there is still no room.
bool charge_device(Device& device, std::size_t bytes);
// Counts `bytes` of host memory as mapped by the device, and takes device memory for the page
// tables of the mapping. Returns false, and counts nothing, if the device has no room for the
// tables.
bool map_host(Device& device, std::size_t bytes);
// Counts `bytes` of host memory as no longer mapped by the device, and gives back the device memory
// for the page tables of the mapping.
void unmap_host(Device& device, std::size_t bytes);
// Gives memory back to the device that the driver keeps for later: free chunks of memory pools, and
// memory of graphs that is not in use.
void trim_device(Device& device);

// Returns the address of `size` bytes of device memory; 0 if the device has no room. A request of
// up to kSlabLimit bytes gets memory inside a slab (2 MiB that many requests share), aligned to 512
// bytes, and `in_slab` becomes true. A larger request gets whole pages of 2 MiB. `held` becomes the
// bytes that were taken from the device for this request alone: 0 inside a slab, since the slab's
// page counts once.
CUdeviceptr take_linear(Context& context, std::size_t size, bool& in_slab, std::size_t& held);
// Frees the memory of a range, of whatever kind, and removes the range from Simulator::ranges.
void release_range(const Range& range);
// Frees all memory that ends with the context: all but blocks of memory pools and mappings of
// physical handles.
void release_context_memory(Context& context);

// Returns the device memory, in bytes, for `bytes` of local memory for each thread that the device
// can run at once. Does not count the 1,024 bytes for each thread that a context always has.
std::size_t local_memory_cost(std::size_t bytes);

}  // namespace cuwarden::simulated_gpu
