#include "runtime_hooks/tracking/devices/memory_pools.hpp"

#include <algorithm>
#include <utility>

#include "runtime_hooks/driver/device_reading.hpp"

namespace cuwarden::tracking {
namespace {

std::uint64_t rest(std::uint64_t whole, std::uint64_t part) {
  return whole > part ? whole - part : 0;
}

// Bytes that memory pools have taken from the device, and bytes in them that the driver counts as
// used.
struct PoolBytes {
  std::uint64_t reserved = 0, used = 0;
};

// Adds a memory pool's bytes. Returns false if the driver does not tell them.
bool add_pool(const driver::RealDriver& real, CUmemoryPool pool, PoolBytes& sum) {
  cuuint64_t reserved = 0, used = 0;
  if (real.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) !=
          CUDA_SUCCESS ||
      real.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) != CUDA_SUCCESS)
    return false;
  sum.reserved += reserved;
  sum.used += used;
  return true;
}

bool add_graphs(const driver::RealDriver& real, CUdevice device, std::uint64_t live,
                IdleBytes& sum) {
  cuuint64_t reserved = 0, used = 0;
  if (real.cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                        &reserved) != CUDA_SUCCESS ||
      real.cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used) !=
          CUDA_SUCCESS)
    return false;
  sum.unused += rest(reserved, used);
  sum.unallocated += rest(reserved, live);
  return true;
}

}  // namespace

void MemoryPools::created(const Pool& made) noexcept {
  if (!is_known(DeviceOrdinal{made.device}) || made.pool == nullptr) return;
  const Locked locked(lock_);
  if (!locked) return;
  for (Pool& pool : pools_) {
    if (pool.pool != nullptr) continue;
    pool = made;
    return;
  }
}

MemoryPools::Pool MemoryPools::destroy_begin(CUmemoryPool destroyed) noexcept {
  if (destroyed == nullptr) return {};
  const Locked locked(lock_);
  if (!locked) {
    left_.store(true);
    return {};
  }
  for (Pool& pool : pools_)
    if (pool.pool == destroyed) return std::exchange(pool, {});
  return {};
}

DeviceOrdinal MemoryPools::device_of(const driver::RealDriver& real, CUmemoryPool wanted) noexcept {
  if (wanted == nullptr) return no_device;
  if (const Locked locked(lock_); locked)
    for (const Pool& pool : pools_)
      if (pool.pool == wanted) return DeviceOrdinal{pool.device};
  int count = 0;
  if (real.cuDeviceGetCount == nullptr || real.cuDeviceGet == nullptr ||
      real.cuDeviceGetDefaultMemPool == nullptr || real.cuDeviceGetCount(&count) != CUDA_SUCCESS)
    return no_device;
  for (int device = 0; device < count; ++device) {
    CUdevice handle = 0;
    CUmemoryPool pool = nullptr;
    if (real.cuDeviceGet(&handle, device) == CUDA_SUCCESS &&
        real.cuDeviceGetDefaultMemPool(&pool, handle) == CUDA_SUCCESS && pool == wanted)
      return DeviceOrdinal{device};
  }
  return no_device;
}

bool MemoryPools::is_plain(const driver::RealDriver& real, DeviceOrdinal device,
                           CUmemoryPool wanted) noexcept {
  CUdevice handle = 0;
  if (wanted == nullptr || real.cuDeviceGet == nullptr ||
      real.cuDeviceGet(&handle, device.value) != CUDA_SUCCESS)
    return false;
  bool found = false;
  each_pool(real, handle, device, [&](const Pool& pool) {
    found = found || (pool.pool == wanted && pool.is_plain);
    return !found;
  });
  return found;
}

template <class Visit>
bool MemoryPools::each_pool(const driver::RealDriver& real, CUdevice handle, DeviceOrdinal device,
                            const Visit& visit) {
  Pool default_pool{.device = device.value, .is_plain = true};
  if (real.cuDeviceGetDefaultMemPool == nullptr ||
      real.cuDeviceGetDefaultMemPool(&default_pool.pool, handle) != CUDA_SUCCESS ||
      !visit(default_pool))
    return false;
  const Locked locked(lock_);
  if (!locked) return false;
  for (const Pool& pool : pools_) {
    if (pool.pool == nullptr || pool.device != device.value) continue;
    if (left_.load() || !visit(pool)) return false;
  }
  return true;
}

std::optional<IdleBytes> MemoryPools::idle_bytes(const driver::RealDriver& real,
                                                 DeviceOrdinal device, std::uint64_t live_in_graphs,
                                                 std::uint64_t live_in_pools) noexcept {
  if (!is_known(device)) return std::nullopt;
  IdleBytes sum;
  if (!used_[device.value].load(std::memory_order_relaxed)) return sum;
  const driver::RelaxedCaptures relaxed(real);
  if (!relaxed) return std::nullopt;
  CUdevice handle = 0;
  PoolBytes pools;
  if (real.cuMemPoolGetAttribute == nullptr || real.cuDeviceGetGraphMemAttribute == nullptr ||
      real.cuDeviceGet == nullptr || real.cuDeviceGet(&handle, device.value) != CUDA_SUCCESS ||
      !add_graphs(real, handle, live_in_graphs, sum) ||
      !each_pool(real, handle, device,
                 [&](const Pool& pool) { return add_pool(real, pool.pool, pools); }))
    return std::nullopt;
  // The memory pool of some of the memory that cuMemFree() has freed may be destroyed by now.
  const std::uint64_t freed = freed_out_of_order_[device.value].load(std::memory_order_relaxed);
  const std::uint64_t used = std::max(rest(pools.used, freed), std::min(pools.used, live_in_pools));
  const std::uint64_t idle = rest(pools.reserved, used);
  sum.unused += idle;
  sum.unallocated += idle;
  return sum;
}

bool MemoryPools::trim(const driver::RealDriver& real, DeviceOrdinal device) {
  if (!is_known(device) || !used_[device.value].load(std::memory_order_relaxed)) return false;
  const driver::RelaxedCaptures relaxed(real);
  CUdevice handle = 0;
  if (!relaxed || real.cuMemPoolTrimTo == nullptr || real.cuDeviceGraphMemTrim == nullptr ||
      real.cuDeviceGet == nullptr || real.cuDeviceGet(&handle, device.value) != CUDA_SUCCESS)
    return false;
  const auto idle = idle_bytes(real, device, 0, 0);
  if (!idle || idle->unallocated == 0) return false;
  real.cuDeviceGraphMemTrim(handle);
  each_pool(real, handle, device, [&](const Pool& pool) {
    real.cuMemPoolTrimTo(pool.pool, 0);
    return true;
  });
  return true;
}

}  // namespace cuwarden::tracking
