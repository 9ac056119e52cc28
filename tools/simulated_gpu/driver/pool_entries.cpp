// Entry points for memory pools: making, settings, access, default and current pools.
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

CUmemoryPool handle_of(MemoryPool* pool) { return reinterpret_cast<CUmemoryPool>(pool); }

CUresult device_pool(CUmemoryPool* out, CUdevice ordinal, MemoryPool* Device::*which) {
  Locked at;
  Device* device = at.sim.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = handle_of(device->*which);
  return CUDA_SUCCESS;
}

bool device_location(const CUmemLocation* location) {
  return location != nullptr && location->type == CU_MEM_LOCATION_TYPE_DEVICE;
}

}  // namespace

namespace entry {

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
  return device_pool(out, device, &Device::default_pool);
}

CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device) {
  return device_pool(out, device, &Device::current_pool);
}

CUresult cuDeviceSetMemPool(Locked& at, CUdevice ordinal, CUmemoryPool handle) {
  Device* device = at.sim.device(ordinal);
  MemoryPool* pool = at.sim.pools.find(handle);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (pool == nullptr || pool->device != device || pool->imported) return CUDA_ERROR_INVALID_VALUE;
  device->current_pool = pool;
  return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType) {
  if (!device_location(location)) return CUDA_ERROR_NOT_SUPPORTED;
  return entry::cuDeviceGetDefaultMemPool(out, location->id);
}

CUresult cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType) {
  if (!device_location(location)) return CUDA_ERROR_NOT_SUPPORTED;
  return entry::cuDeviceGetMemPool(out, location->id);
}

CUresult cuMemSetMemPool(Locked& at, CUmemLocation* location, CUmemAllocationType,
                         CUmemoryPool pool) {
  if (!device_location(location)) return CUDA_ERROR_NOT_SUPPORTED;
  return entry::cuDeviceSetMemPool(at, location->id, pool);
}

CUresult cuMemPoolCreate(Locked& at, CUmemoryPool* out, const CUmemPoolProps* properties) {
  if (out == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  Device* device = at.sim.device(properties->location.id);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  auto pool = std::make_unique<MemoryPool>(device);
  pool->max_size = properties->maxSize;
  *out = handle_of(at.sim.pools.add(std::move(pool)));
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(Locked& at, CUmemoryPool handle) {
  MemoryPool* pool = at.sim.pools.find(handle);
  if (pool == nullptr || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  if (pool->device->current_pool == pool) pool->device->current_pool = pool->device->default_pool;
  // The handle is refused from now on, also while the program has memory of the pool (measured).
  // That memory stays valid, and the pool exists until the last of it is freed.
  at.sim.pools.remove(pool);
  pool->release_threshold = 0;
  pool->observe(nullptr);
  pool->trim(0);
  if (pool->reserved != 0) at.sim.ending_pools.push_back(pool);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(Locked& at, CUmemoryPool handle, size_t keep) {
  MemoryPool* pool = at.sim.pools.find(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(refuse_under_capture(at.sim));
  pool->trim(keep);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(Locked& at, CUmemoryPool handle, CUmemPool_attribute attribute,
                               void* value) {
  MemoryPool* pool = at.sim.pools.find(handle);
  if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      pool->reuse_event_dependencies = *static_cast<int*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      pool->reuse_opportunistic = *static_cast<int*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->reuse_internal = *static_cast<int*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool->release_threshold = *static_cast<cuuint64_t*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (*static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool->used_high : pool->reserved_high) = 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuMemPoolGetAttribute(Locked& at, CUmemoryPool handle, CUmemPool_attribute attribute,
                               void* value) {
  MemoryPool* pool = at.sim.pools.find(handle);
  if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(refuse_under_capture(at.sim));
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      *static_cast<int*>(value) = pool->reuse_event_dependencies;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      *static_cast<int*>(value) = pool->reuse_opportunistic;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int*>(value) = pool->reuse_internal;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *static_cast<cuuint64_t*>(value) = pool->release_threshold;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *static_cast<cuuint64_t*>(value) = pool->reserved;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *static_cast<cuuint64_t*>(value) = pool->reserved_high;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *static_cast<cuuint64_t*>(value) = pool->used + pool->freed_otherwise;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *static_cast<cuuint64_t*>(value) = pool->used_high;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuMemPoolSetAccess(Locked& at, CUmemoryPool handle, const CUmemAccessDesc* grants,
                            size_t count) {
  MemoryPool* pool = at.sim.pools.find(handle);
  if (pool == nullptr || (grants == nullptr && count > 0)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    if (at.sim.device(grants[i].location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    pool->access[grants[i].location.id] = grants[i].flags;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(Locked& at, CUmemAccess_flags* flags, CUmemoryPool handle,
                            CUmemLocation* location) {
  MemoryPool* pool = at.sim.pools.find(handle);
  if (pool == nullptr || flags == nullptr || !device_location(location))
    return CUDA_ERROR_INVALID_VALUE;
  const auto found = pool->access.find(location->id);
  *flags = location->id == pool->device->ordinal ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : found != pool->access.end()         ? found->second
                                                 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
