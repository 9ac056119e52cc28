// Memory of the pools in the program's hands: found by address, and freed as the driver's own is.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/serving/serving_pools.hpp"

namespace cuwarden::serving {

// An allocation that a pool served. To the program it is one of the driver's.
struct PoolMemory {
  std::uint64_t start = 0, bytes = 0;
  std::uint64_t mapped_start = 0, mapped_bytes = 0;  // the pages that it lies in
  std::uint64_t serial = 0;                          // 0: the driver's buffer id is unique
  bool sync_memops = false;
  bool is_pinned = false;  // page-locked host memory
  DeviceOrdinal device = no_device;
  ContextId context;
  Kind kind = Kind::device;
  std::uint64_t memory_pool = 0;  // CUmemoryPool that stream-ordered memory seems to be from
};
// Returns the allocation that the address lies in.
std::optional<PoolMemory> pool_memory_around(ServingPools&, std::uint64_t address) noexcept;

// Returns true for an address in a pool's range, and for the start of spilled memory.
bool is_of_pool(CUdeviceptr) noexcept;
// Returns true for an address inside an allocation of the pools.
bool is_in_pool(CUdeviceptr) noexcept;

// Returns true for an address in the page-locked pool.
bool is_of_pinned_pool(const void*) noexcept;
CUresult free_of_pinned_pool(const driver::RealDriver&, void*) noexcept;

// Frees as cuMemFree does, after waiting for the device. During a stream capture waiting is
// forbidden: the memory goes later. `used_in`: context of the stream in which the program freed the
// memory, which is waited for then; 0: none.
CUresult free_of_pool(const driver::RealDriver&, CUdeviceptr, ContextId used_in = {}) noexcept;

}  // namespace cuwarden::serving
