// Entry points for the memory that a device keeps for graphs, from one launch to the next.
#include <algorithm>

#include "tools/simulated_gpu/device/modules.hpp"
#include "tools/simulated_gpu/device/work.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace entry {

CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
  Locked at;
  Device* device = at.sim.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  device->refund(device->graph_reserved - device->graph_used);
  device->graph_reserved = device->graph_used;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void* value) {
  Locked at;
  Device* device = at.sim.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuuint64_t& out = *static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      out = device->graph_used;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      out = device->graph_used_high;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      out = device->graph_reserved;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      out = device->graph_reserved_high;
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void* value) {
  Locked at;
  Device* device = at.sim.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr || *static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
    device->graph_used_high = 0;
  } else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
    device->graph_reserved_high = 0;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
