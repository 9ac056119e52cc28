// The pools that stream-ordered memory and graphs of this process take from a device, as far as
// they are known: each device's default pool, and those that the program made. What they hold for
// the next request is in nobody's allocation.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::families {

// Of graphs the driver counts whole chunks as used, of which allocations may have a part only.
struct IdleBytes {
  std::uint64_t unused = 0;       // as the driver counts
  std::uint64_t unallocated = 0;  // with the rest of those chunks
};

class MemoryPools {
 public:
  // Memory in stream order or a graph's node was allocated on this device: before that, asking for
  // its pools would be what makes them.
  void used_on(DeviceOrdinal device) noexcept {
    // Threads that allocate share this line: it is written once.
    if (is_known(device) && !used_[device.value].load(std::memory_order_relaxed))
      used_[device.value].store(true, std::memory_order_relaxed);
  }

  struct Pool {
    CUmemoryPool pool = nullptr;  // null: none
    std::int32_t device = -1;
    bool is_plain = false;  // no other process can open it, and it has no limit of its own
  };
  void created(const Pool&) noexcept;
  // Before the driver's destroy: nobody asks the driver about that pool any more. As it was
  // created; none: it was not known.
  Pool destroy_begin(CUmemoryPool) noexcept;
  // Whether the pool is known to lie on this device and to be plain, as the default one is.
  bool is_plain(const driver::RealDriver&, DeviceOrdinal, CUmemoryPool) noexcept;

  // What pools and graphs keep of a device and no allocation has. Null: not known.
  std::optional<IdleBytes> idle_bytes(const driver::RealDriver&, DeviceOrdinal,
                                      std::uint64_t live_in_graphs) noexcept;

  // They give the device what no allocation has. False: there is nothing.
  bool trim(const driver::RealDriver&, DeviceOrdinal);

 private:
  // Visits the pools of a device, under the lock. False: not all are known.
  template <class Visit>
  bool each_pool(const driver::RealDriver&, CUdevice, DeviceOrdinal, const Visit&);
  static constexpr std::int32_t device_limit = 64;
  // More pools are left out: their idle bytes stay unexplained.
  static constexpr std::size_t limit = 64;
  static bool is_known(DeviceOrdinal device) {
    return device.value >= 0 && device.value < device_limit;
  }

  std::atomic<bool> used_[device_limit]{};
  // Held while the driver is asked about the pools: it does not check a handle well, and one that
  // is destroyed meanwhile must not be used. The driver calls nothing of the program's in between.
  FutexLock lock_;
  // The lock was given up, and a pool destroyed without it: nobody asks any more.
  std::atomic<bool> left_{false};
  Pool pools_[limit];
};

}  // namespace cuwarden::families
