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

// Memory of a device that memory pools and graphs keep. The driver counts a graph's chunk as used
// as a whole, even if allocations have only a part of it.
struct IdleBytes {
  std::uint64_t unused = 0;       // bytes that the driver counts as unused
  std::uint64_t unallocated = 0;  // `unused`, plus the parts of used chunks that no allocation has
};

class MemoryPools {
 public:
  // Notes that stream-ordered memory or a graph's node was allocated on this device. Before that
  // the driver is not asked about its memory pools, since a question would create them.
  void used_on(DeviceOrdinal device) noexcept {
    // Threads that allocate share this line: it is written once.
    if (is_known(device) && !used_[device.value].load(std::memory_order_relaxed))
      used_[device.value].store(true, std::memory_order_relaxed);
  }

  // A memory pool that the program created.
  struct Pool {
    CUmemoryPool pool = nullptr;  // null: none
    std::int32_t device = -1;
    bool is_plain = false;  // true if no other process can open the pool, and it has no size limit
  };
  // Notes a memory pool that the program has created.
  void created(const Pool&) noexcept;
  // To be called before the driver destroys the pool, which is not asked about afterwards. Returns
  // the pool as it was created; an empty one where it was not known.
  Pool destroy_begin(CUmemoryPool) noexcept;
  // Returns the device of a pool; no_device where it is not known. Asks for the default pools of
  // all devices if the program did not make the pool.
  DeviceOrdinal device_of(const driver::RealDriver&, CUmemoryPool) noexcept;
  // Returns true if the pool is known to lie on this device and to be plain, as the default pool
  // is.
  bool is_plain(const driver::RealDriver&, DeviceOrdinal, CUmemoryPool) noexcept;

  // Returns the memory of a device that pools and graphs keep; none where the driver does not say.
  std::optional<IdleBytes> idle_bytes(const driver::RealDriver&, DeviceOrdinal,
                                      std::uint64_t live_in_graphs) noexcept;

  // Has pools and graphs give unallocated memory back to the device. Returns false where there is
  // none.
  bool trim(const driver::RealDriver&, DeviceOrdinal);

 private:
  // Visits the pools of a device, under the lock. Returns false where not all are known.
  template <class Visit>
  bool each_pool(const driver::RealDriver&, CUdevice, DeviceOrdinal, const Visit&);
  static constexpr std::int32_t device_limit = 64;
  // More pools are left out: their idle bytes stay unexplained.
  static constexpr std::size_t limit = 64;
  static bool is_known(DeviceOrdinal device) {
    return device.value >= 0 && device.value < device_limit;
  }

  std::atomic<bool> used_[device_limit]{};
  // Held while the driver is asked about the pools. The driver does not check handles well, and a
  // pool that is destroyed meanwhile must not be used. The driver calls nothing of the program's
  // below it.
  FutexLock lock_;
  // True once the lock was given up and a pool destroyed without it: no pool is asked any more.
  std::atomic<bool> left_{false};
  Pool pools_[limit];
};

}  // namespace cuwarden::tracking
