// Allocations that cuwarden served from its pools or spilled to host memory. They are found by
// address, and freed by the functions declared here.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/serving/serving_pools.hpp"

namespace cuwarden::serving {

// A live allocation that cuwarden served instead of the driver: from its pool of device memory or
// of page-locked memory, or spilled to host memory. Hooks answer the program's questions about it
// as the driver would for an allocation of its own.
struct PoolMemory {
  std::uint64_t start = 0, bytes = 0;  // address, and requested size in bytes
  // Address and size in bytes of the mapped pages that hold the allocation. Both 0 for page-locked
  // memory.
  std::uint64_t mapped_start = 0, mapped_bytes = 0;
  // Answer for CU_POINTER_ATTRIBUTE_BUFFER_ID: a number that no other allocation of the pools has.
  // 0: the memory is spilled, and the driver's own buffer id is the answer.
  std::uint64_t serial = 0;
  // Value of CU_POINTER_ATTRIBUTE_SYNC_MEMOPS; always false for page-locked memory, whose value the
  // driver knows.
  bool sync_memops = false;
  bool is_pinned = false;            // true for page-locked host memory
  DeviceOrdinal device = no_device;  // device of the memory; no_device: page-locked host memory
  ContextId context;                 // context that the memory belongs to
  // Kind of the memory. Kind::stream_ordered for spilled memory that the program asked for in
  // stream order; otherwise Kind::device, even for page-locked memory.
  Kind kind = Kind::device;
  // Value of CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: for stream-ordered memory, the CUmemoryPool that
  // the program asked for the memory; 0 for other memory.
  std::uint64_t memory_pool = 0;
};
// Returns the live allocation of the pools, or the live spilled allocation, that contains the
// address. Null if there is none. Null, too, if another thread has kept a lock of the pools for
// more than ten seconds.
std::optional<PoolMemory> pool_memory_around(ServingPools&, std::uint64_t address) noexcept;
// Returns true if the address lies in memory of the pools that no live allocation has: the program
// has freed the memory there, or never got it. To be asked about addresses for which
// pool_memory_around() returns null.
bool is_unused_in_pool(ServingPools&, std::uint64_t address) noexcept;
// Stores the value of CU_POINTER_ATTRIBUTE_SYNC_MEMOPS (PoolMemory::sync_memops) of the live
// allocation of device memory, or spilled allocation, that begins at the address `start`. `on`: the
// value. Does nothing if no such allocation begins there.
void note_sync_memops(ServingPools&, std::uint64_t start, bool on) noexcept;

// Returns true if memory at the address must be freed by free_of_pool(). The address then lies in
// cuwarden's pool of device memory, whether allocated or not, or is the start of a spilled
// allocation.
bool is_of_pool(CUdeviceptr) noexcept;
// Returns true if the address lies inside a live allocation of the pools, or inside a spilled one.
bool is_in_pool(CUdeviceptr) noexcept;

// Returns true if memory at the address must be freed by free_of_pinned_pool(): it lies in
// cuwarden's pool of page-locked memory, allocated or not. False for memory of a context that is
// about to end. True for any address if another thread has kept the pool's lock for more than ten
// seconds.
bool is_of_pinned_pool(const void*) noexcept;
// Frees page-locked memory for which is_of_pinned_pool() is true, once the context in which it was
// allocated has finished its work. If a capture makes it impossible to wait for that, the memory is
// freed later. Returns CUDA_SUCCESS in both cases. Returns CUDA_ERROR_INVALID_VALUE if no
// allocation begins at the address. If the wait fails, returns the driver's error, and the memory
// stays allocated. After CUDA_ERROR_DEINITIALIZED it is gone, since the driver has then freed all
// memory. After a free, also frees memory whose free was put off, and gives unused memory back to
// the host.
CUresult free_of_pinned_pool(const driver::RealDriver&, void*) noexcept;

// Frees memory for which is_of_pool() is true, once the context in which it was allocated has
// finished its work. If a capture makes it impossible to wait for that, the memory is freed later.
// Returns CUDA_SUCCESS in both cases. `used_in`: context of the stream in which the program freed
// the memory; 0: none. If a free of spilled memory is put off, the work of this context is waited
// for, too. Returns CUDA_ERROR_INVALID_VALUE if no allocation begins at the address. If the wait
// fails, returns the driver's error, and the memory stays allocated. After CUDA_ERROR_DEINITIALIZED
// it is gone, since the driver has then freed all memory. After a free, also frees memory whose
// free was put off.
CUresult free_of_pool(const driver::RealDriver&, CUdeviceptr, ContextId used_in = {}) noexcept;
// To be called after free_of_pool() has succeeded and the free is recorded, by a thread that holds
// no lock. If the device is short of memory, gives pages back that lie unused beside used ones.
// Brings blocks back from host memory once there is room. May pause the program for both. Must not
// be called while calls are not recorded, because some of these do not wait for the pause to end.
void memory_of_pool_was_freed() noexcept;

}  // namespace cuwarden::serving
