// Allocates and frees linear device memory, as cuMemAlloc and cuMemFree do. Counts the used bytes
// of each device. Callers hold the simulator's lock (Simulator::mutex).
#pragma once

#include "tools/simulated_gpu/device/state.hpp"

namespace cuwarden::simulated_gpu {

// Counts `bytes` of the device as used by this process. If too few bytes are free, or the process
// would hold more than Device::process_limit or Device::cgroup_limit, first frees the memory that
// memory pools and graphs keep unused (trim_device()). Returns false, and counts nothing, if that
// does not suffice.
bool charge_device(Device& device, std::size_t bytes);
// Counts `bytes` of host memory as mapped into the device's addresses, and takes device memory for
// the page tables of all such mappings. Returns false, and counts nothing, if the device has too
// few free bytes for the tables.
bool map_host(Device& device, std::size_t bytes);
// Undoes map_host() for `bytes` of host memory: they are not mapped any more, and the device memory
// of their page tables is free again.
void unmap_host(Device& device, std::size_t bytes);
// Frees device memory that the simulated driver keeps for later requests: unused chunks of the
// device's memory pools, and memory of launched graphs that is not in use.
void trim_device(Device& device);

// Takes `size` bytes of device memory for the context, and returns their address; 0 if
// charge_device() fails or the process has too little address space. A request of up to kSlabLimit
// bytes gets memory inside a slab (2 MiB that many requests share), aligned to 512 bytes. A larger
// request gets whole pages of 2 MiB. Sets `in_slab` to true for memory inside a slab. Sets `held`
// to the bytes taken from the device for this request alone: 0 inside a slab. The caller frees the
// memory by release_range().
CUdeviceptr take_linear(Context& context, std::size_t size, bool& in_slab, std::size_t& held);
// Removes a range of any kind from Simulator::ranges, and frees its memory. `range`: may be the
// table's own entry. Memory of kinds `registered`, `mapping` and `graph` is not freed here: the
// program, the physical handle or the device keeps it.
void release_range(const Range& range);
// Frees all memory that belongs to the context: device memory, page-locked, managed and imported
// memory, and registrations of host memory. Called when the context ends. Blocks of memory pools,
// mappings of physical handles and memory of launched graphs stay, because they belong to no
// context.
void release_context_memory(Context& context);

// Returns the bytes of device memory that it takes to give `bytes` of local memory to each thread
// that the device can run at once. Does not count the first 1,024 bytes of each thread, which a
// context has from its start.
std::size_t local_memory_cost(std::size_t bytes);

}  // namespace cuwarden::simulated_gpu
