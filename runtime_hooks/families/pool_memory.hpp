// What the program may do with memory of the pools, as with the driver's own.
#pragma once

#include <atomic>
#include <optional>

#include "runtime_hooks/families/hooked_call.hpp"

namespace cuwarden::families {

// The recorder whose pools have, or had, memory in the program's hands; null: none. It is asked
// also where nothing is recorded any more.
inline constinit std::atomic<Recorder*> pool_keeper{nullptr};

// An allocation of the pools: to the program one of the driver's.
struct PoolMemory {
  std::uint64_t start = 0, bytes = 0;
  std::uint64_t mapped_start = 0, mapped_bytes = 0;  // the pages that it lies in
  std::uint64_t serial = 0;                          // 0: the driver's own id tells it from others
  bool sync_memops = false;
  bool is_pinned = false;  // the host's
  DeviceOrdinal device = no_device;
  ContextId context;
  Kind kind = Kind::device;
  std::uint64_t memory_pool = 0;  // CUmemoryPool that stream-ordered memory seems to be from
};
// The one that the address lies in.
std::optional<PoolMemory> pool_memory_around(Recorder&, std::uint64_t address) noexcept;

// Whether such memory begins there, or the address is a pool's and nothing does.
bool is_of_pool(CUdeviceptr) noexcept;
// Whether the address lies in some.
bool is_in_pool(CUdeviceptr) noexcept;

// The same of page-locked memory.
bool is_of_pinned_pool(const void*) noexcept;
CUresult free_of_pinned_pool(const driver::RealDriver&, void*) noexcept;

// As cuMemFree: waits for the device. During a stream capture nobody may; the memory goes later.
// `used_in`: the context of a stream in which it was freed, and that is to be waited for then.
CUresult free_of_pool(const driver::RealDriver&, CUdeviceptr, ContextId used_in = {}) noexcept;

// The peer may use what the pools have on the device, or not any more. False: not all of it.
bool change_access_of_pools(Recorder&, DeviceOrdinal device, DeviceOrdinal peer, bool may) noexcept;

}  // namespace cuwarden::families
