#include "runtime_hooks/families/memory_pools.hpp"

#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/families/bodies.hpp"

namespace cuwarden::families {
namespace {

std::uint64_t rest(std::uint64_t whole, std::uint64_t part) {
  return whole > part ? whole - part : 0;
}

// False: the driver does not say.
bool add_pool(const driver::RealDriver& real, CUmemoryPool pool, IdleBytes& sum) {
  cuuint64_t reserved = 0, used = 0;
  if (real.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) !=
          CUDA_SUCCESS ||
      real.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) != CUDA_SUCCESS)
    return false;
  sum.unused += rest(reserved, used);
  sum.unallocated += rest(reserved, used);
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

void MemoryPools::created(DeviceOrdinal device, CUmemoryPool made) noexcept {
  if (!is_known(device) || made == nullptr) return;
  const Locked locked(lock_);
  if (!locked) return;
  for (Pool& pool : pools_) {
    if (pool.pool != nullptr) continue;
    pool = {made, device.value};
    return;
  }
}

DeviceOrdinal MemoryPools::destroy_begin(CUmemoryPool destroyed) noexcept {
  if (destroyed == nullptr) return no_device;
  const Locked locked(lock_);
  if (!locked) {
    left_.store(true);
    return no_device;
  }
  for (Pool& pool : pools_) {
    if (pool.pool != destroyed) continue;
    const DeviceOrdinal device{pool.device};
    pool = {};
    return device;
  }
  return no_device;
}

template <class Visit>
bool MemoryPools::each_pool(const driver::RealDriver& real, CUdevice handle, DeviceOrdinal device,
                            const Visit& visit) {
  CUmemoryPool default_pool = nullptr;
  if (real.cuDeviceGetDefaultMemPool == nullptr ||
      real.cuDeviceGetDefaultMemPool(&default_pool, handle) != CUDA_SUCCESS || !visit(default_pool))
    return false;
  const Locked locked(lock_);
  if (!locked) return false;
  for (const Pool& pool : pools_) {
    if (pool.pool == nullptr || pool.device != device.value) continue;
    if (left_.load() || !visit(pool.pool)) return false;
  }
  return true;
}

std::optional<IdleBytes> MemoryPools::idle_bytes(const driver::RealDriver& real,
                                                 DeviceOrdinal device,
                                                 std::uint64_t live_in_graphs) noexcept {
  if (!is_known(device)) return std::nullopt;
  IdleBytes sum;
  if (!used_[device.value].load(std::memory_order_relaxed)) return sum;
  const driver::RelaxedCaptures relaxed(real);
  if (!relaxed) return std::nullopt;
  CUdevice handle = 0;
  if (real.cuMemPoolGetAttribute == nullptr || real.cuDeviceGetGraphMemAttribute == nullptr ||
      real.cuDeviceGet == nullptr || real.cuDeviceGet(&handle, device.value) != CUDA_SUCCESS ||
      !add_graphs(real, handle, live_in_graphs, sum) ||
      !each_pool(real, handle, device,
                 [&](CUmemoryPool pool) { return add_pool(real, pool, sum); }))
    return std::nullopt;
  return sum;
}

bool MemoryPools::trim(const driver::RealDriver& real, DeviceOrdinal device) {
  if (!is_known(device) || !used_[device.value].load(std::memory_order_relaxed)) return false;
  const driver::RelaxedCaptures relaxed(real);
  CUdevice handle = 0;
  if (!relaxed || real.cuMemPoolTrimTo == nullptr || real.cuDeviceGraphMemTrim == nullptr ||
      real.cuDeviceGet == nullptr || real.cuDeviceGet(&handle, device.value) != CUDA_SUCCESS)
    return false;
  const auto idle = idle_bytes(real, device, 0);
  if (!idle || idle->unallocated == 0) return false;
  real.cuDeviceGraphMemTrim(handle);
  each_pool(real, handle, device, [&](CUmemoryPool pool) {
    real.cuMemPoolTrimTo(pool, 0);
    return true;
  });
  return true;
}

CUresult cuMemPoolCreate(HookedCall& call, CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  const CUresult result = call.real().cuMemPoolCreate(pool, poolProps);
  if (call.recording() && result == CUDA_SUCCESS &&
      poolProps->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
    call.recorder().pools().created(DeviceOrdinal{poolProps->location.id}, *pool);
  return result;
}

CUresult cuMemPoolDestroy(HookedCall& call, CUmemoryPool pool) {
  if (!call.recording()) return call.real().cuMemPoolDestroy(pool);
  const DeviceOrdinal device = call.recorder().pools().destroy_begin(pool);
  const CUresult result = call.real().cuMemPoolDestroy(pool);
  if (result != CUDA_SUCCESS) call.recorder().pools().created(device, pool);
  return result;
}

}  // namespace cuwarden::families
