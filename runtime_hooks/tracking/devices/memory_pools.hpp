// The memory pools (CUmemoryPool) from which stream-ordered memory and graphs of this process come,
// as far as they are known: each device's default pool, and those that the program made. Memory
// that they keep for the next request is part of no allocation.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::tracking {

// Device memory that memory pools (CUmemoryPool) and graphs keep for later requests. Graphs take
// memory in chunks. The driver counts a chunk as used as a whole, even if allocations use only a
// part of it.
struct IdleBytes {
  // Bytes in memory pools (CUmemoryPool) and in chunks of graphs that the driver counts as reserved
  // but not used. Memory of pools that was freed by cuMemFree() is included, although the driver
  // goes on counting it as used.
  std::uint64_t unused = 0;
  // Bytes in memory pools (CUmemoryPool) and in chunks of graphs that no live allocation uses:
  // `unused`, and those parts of the graphs' used chunks that lie in no allocation.
  std::uint64_t unallocated = 0;
};

// The memory pools (CUmemoryPool) of this process: each device's default pool, and those that the
// program created. All functions may be called by several threads at once.
class MemoryPools {
 public:
  // Allows idle_bytes() and trim() to ask the driver about this device from now on. Must be called
  // after stream-ordered memory or a graph's memory node was allocated on the device. Before that,
  // the driver is not asked, since a question would create the device's memory pools.
  void used_on(DeviceOrdinal device) noexcept {
    // All threads that allocate read this element of `used_`. It is written only once, so that its
    // cache line stays in every processor's cache.
    if (!is_known(device) || used_[device.value].load(std::memory_order_relaxed)) return;
    used_[device.value].store(true, std::memory_order_relaxed);
    any_used_.store(true, std::memory_order_relaxed);
  }
  // True once used_on() was called for any device.
  bool any_used() const noexcept { return any_used_.load(std::memory_order_relaxed); }
  // Notes that stream-ordered memory of the device, with `bytes` as requested, was freed by
  // cuMemFree(). The driver goes on counting it as used in its memory pool (measured); idle_bytes()
  // does not.
  void freed_out_of_order(DeviceOrdinal device, std::uint64_t bytes) noexcept {
    if (!is_known(device)) return;
    freed_out_of_order_[device.value].fetch_add((bytes + block_step - 1) / block_step * block_step,
                                                std::memory_order_relaxed);
  }

  // A memory pool that the program created.
  struct Pool {
    CUmemoryPool pool = nullptr;  // The memory pool's handle; null in an unused entry.
    std::int32_t device = -1;     // Ordinal of the device that has the memory pool.
    // True if no other process can open the memory pool and it has no size limit.
    bool is_plain = false;
  };
  // Records a memory pool that the program has created. If 64 are recorded already, the pool is
  // left out. Does nothing if Pool::pool is null or the ordinal is not from 0 to 63.
  void created(const Pool&) noexcept;
  // Removes a memory pool from the record; must be called before the driver destroys it. Returns
  // the pool's entry, with a null pool if it was not recorded. If the driver then refuses to
  // destroy the pool, the caller must pass the entry to created() again.
  Pool destroy_begin(CUmemoryPool) noexcept;
  // Returns the device on which the memory pool lies; no_device if it is not known. If the
  // program did not create the pool, asks the driver for the default pools of all devices.
  DeviceOrdinal device_of(const driver::RealDriver&, CUmemoryPool) noexcept;
  // True if the memory pool is known to lie on this device, cannot be opened by other processes and
  // has no size limit. The device's default pool is like that. False for null.
  bool is_plain(const driver::RealDriver&, DeviceOrdinal, CUmemoryPool) noexcept;

  // Returns the bytes that memory pools and graphs keep on the device for later requests. Both
  // numbers are 0 if used_on() was not called for the device. Returns none if the driver does not
  // say, or if the ordinal is not from 0 to 63. `live_in_graphs`, `live_in_pools`: bytes that live
  // allocations of graphs, and stream-ordered ones, have on the device. Neither counts as idle.
  std::optional<IdleBytes> idle_bytes(const driver::RealDriver&, DeviceOrdinal,
                                      std::uint64_t live_in_graphs,
                                      std::uint64_t live_in_pools) noexcept;

  // Makes the driver return to the device the memory of its memory pools and graphs that no
  // allocation uses. Returns true if that was tried, even if nothing came back. Returns false, with
  // nothing done, if used_on() was not called for the device, or if the driver does not say what
  // the pools and graphs keep. Returns false, with nothing done, also if both are true: no pool has
  // unused memory, and graphs have no memory at all.
  bool trim(const driver::RealDriver&, DeviceOrdinal);

 private:
  // Calls visit(pool) for each memory pool of the device until visit() returns false: first for the
  // default pool, then with `lock_` held for those that the program created. Returns false if not
  // all were visited.
  template <class Visit>
  bool each_pool(const driver::RealDriver&, CUdevice, DeviceOrdinal, const Visit&);
  // Devices with this ordinal or a higher one are ignored.
  static constexpr std::int32_t device_limit = 64;
  // Largest number of the program's memory pools that are recorded at a time. created() leaves out
  // further ones.
  static constexpr std::size_t limit = 64;
  // True if the device's ordinal is in [0, device_limit).
  static bool is_known(DeviceOrdinal device) {
    return device.value >= 0 && device.value < device_limit;
  }

  // Size of an allocation in a memory pool is a multiple of this many bytes (measured).
  static constexpr std::uint64_t block_step = 512;

  // By device ordinal: true once stream-ordered memory or a graph's memory node was allocated on
  // the device.
  std::atomic<bool> used_[device_limit]{};
  std::atomic<bool> any_used_{false};  // true once an element of `used_` is
  // By device ordinal: bytes of stream-ordered memory that cuMemFree() has freed. On cache lines of
  // their own, because all threads that free read `any_used_`.
  alignas(64) std::atomic<std::uint64_t> freed_out_of_order_[device_limit]{};
  // Protects `pools_`. Held while the driver is asked about these memory pools, so that none is
  // destroyed meanwhile: the driver hardly checks handles. The driver calls no code of the program
  // there.
  FutexLock lock_;
  // True once a memory pool was destroyed while `lock_` could not be had. From then on the driver
  // is asked about no pool that the program created, since it may be the destroyed one.
  std::atomic<bool> left_{false};
  // Memory pools that the program created; unused entries have a null handle.
  Pool pools_[limit];
};

}  // namespace cuwarden::tracking
