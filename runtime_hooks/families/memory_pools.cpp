#include "runtime_hooks/families/memory_pools.hpp"

#include "runtime_hooks/families/bodies.hpp"
#include "runtime_hooks/families/device_reading.hpp"

namespace cuwarden::families {
namespace {

// Adds reserved - used, for which ask(attribute, value) asks the driver. False: it does not say.
template <class Attribute, class Ask>
bool add_idle(Attribute reserved_now, Attribute used_now, std::uint64_t& sum, Ask ask) {
  cuuint64_t reserved = 0, used = 0;
  if (ask(reserved_now, &reserved) != CUDA_SUCCESS || ask(used_now, &used) != CUDA_SUCCESS)
    return false;
  sum += reserved > used ? reserved - used : 0;
  return true;
}

bool add_idle(const driver::RealDriver& real, CUmemoryPool pool, std::uint64_t& sum) {
  return add_idle(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, sum,
                  [&](CUmemPool_attribute attribute, cuuint64_t* value) {
                    return real.cuMemPoolGetAttribute(pool, attribute, value);
                  });
}

bool add_idle_of_graphs(const driver::RealDriver& real, CUdevice device,
                        std::optional<std::uint64_t> live, std::uint64_t& sum) {
  const auto ask = [&](CUgraphMem_attribute attribute, cuuint64_t* value) {
    return real.cuDeviceGetGraphMemAttribute(device, attribute, value);
  };
  if (!live)
    return add_idle(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, sum,
                    ask);
  cuuint64_t reserved = 0;
  if (ask(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) != CUDA_SUCCESS) return false;
  sum += reserved > *live ? reserved - *live : 0;
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

std::optional<std::uint64_t> MemoryPools::idle_bytes(
    const driver::RealDriver& real, DeviceOrdinal device,
    std::optional<std::uint64_t> live_in_graphs) noexcept {
  if (!is_known(device)) return std::nullopt;
  std::uint64_t sum = 0;
  if (!used_[device.value].load(std::memory_order_relaxed)) return sum;
  const RelaxedCaptures relaxed(real);
  if (!relaxed) return std::nullopt;
  CUdevice handle = 0;
  CUmemoryPool default_pool = nullptr;
  if (real.cuMemPoolGetAttribute == nullptr || real.cuDeviceGetDefaultMemPool == nullptr ||
      real.cuDeviceGetGraphMemAttribute == nullptr || real.cuDeviceGet == nullptr ||
      real.cuDeviceGet(&handle, device.value) != CUDA_SUCCESS ||
      real.cuDeviceGetDefaultMemPool(&default_pool, handle) != CUDA_SUCCESS ||
      !add_idle(real, default_pool, sum) || !add_idle_of_graphs(real, handle, live_in_graphs, sum))
    return std::nullopt;
  const Locked locked(lock_);
  if (!locked) return std::nullopt;
  for (const Pool& pool : pools_) {
    if (pool.pool == nullptr || pool.device != device.value) continue;
    if (left_.load() || !add_idle(real, pool.pool, sum)) return std::nullopt;
  }
  return sum;
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
