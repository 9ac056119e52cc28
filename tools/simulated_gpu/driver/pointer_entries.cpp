// Entry points for attributes of pointers.
#include "tools/simulated_gpu/device/virtual_memory.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

bool on_host(const Range& range) {
  if (range.kind == RangeKind::mapping) return range.physical->device == nullptr;
  return range.kind == RangeKind::pinned || range.kind == RangeKind::registered;
}

template <typename T>
CUresult put(void* data, T value) {
  *static_cast<T*>(data) = value;
  return CUDA_SUCCESS;
}

CUresult attribute_of(void* data, CUpointer_attribute attribute, const Range& range,
                      CUdeviceptr address) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put<CUcontext>(data, reinterpret_cast<CUcontext>(range.context));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<unsigned>(data, on_host(range) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put<CUdeviceptr>(data, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!on_host(range) && range.kind != RangeKind::managed) return CUDA_ERROR_INVALID_VALUE;
      return put<void*>(data, reinterpret_cast<void*>(address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put<unsigned>(data, range.sync_memops ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put<unsigned long long>(data, range.buffer_id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put<unsigned>(data, range.kind == RangeKind::managed ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(data, range.device != nullptr    ? range.device->ordinal
                            : range.context != nullptr ? range.context->device->ordinal
                                                       : 0);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put<int>(data, range.kind == RangeKind::device ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put<CUdeviceptr>(data, range.start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put<size_t>(data, range.requested);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put<int>(data, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put<unsigned long long>(
          data,
          range.kind == RangeKind::mapping
              ? static_cast<unsigned long long>(range.physical->properties.requestedHandleTypes)
              : 0);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return put<int>(data, range.kind == RangeKind::mapping
                                ? range.physical->properties.allocFlags.gpuDirectRDMACapable
                                : !on_host(range));
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put<unsigned>(data,
                           range.kind == RangeKind::mapping && range.readable == 0
                               ? 0u
                               : static_cast<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put<CUmemoryPool>(data, reinterpret_cast<CUmemoryPool>(range.pool));
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put<size_t>(data, range.requested);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put<void*>(data, reinterpret_cast<void*>(range.start));
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put<unsigned long long>(data, range.buffer_id);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace

namespace entry {

CUresult cuPointerGetAttribute(InContext& at, void* data, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Range* range = at.sim.ranges.around(address);
  return range == nullptr ? CUDA_ERROR_INVALID_VALUE
                          : attribute_of(data, attribute, *range, address);
}

// For a pointer that the driver does not know, answers zeros, where cuPointerGetAttribute fails.
CUresult cuPointerGetAttributes(InContext& at, unsigned int count, CUpointer_attribute* attributes,
                                void** data, CUdeviceptr address) {
  if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Range* range = at.sim.ranges.around(address);
  for (unsigned i = 0; i < count; ++i) {
    if (range != nullptr && attribute_of(data[i], attributes[i], *range, address) == CUDA_SUCCESS)
      continue;
    switch (attributes[i]) {
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        put<int>(data[i], -2);
        break;
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      case CU_POINTER_ATTRIBUTE_MAPPED:
      case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        put<unsigned>(data[i], 0);
        break;
      case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        break;
      default:
        put<unsigned long long>(data[i], 0);
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(InContext& at, const void* value, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  Range* range = at.sim.ranges.around(address);
  if (range == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || range->kind == RangeKind::mapping)
    return CUDA_ERROR_NOT_SUPPORTED;
  range->sync_memops = *static_cast<const unsigned*>(value) != 0;
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
