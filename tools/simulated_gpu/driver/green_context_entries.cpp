// Entry points for green contexts, which have a part of a device's multiprocessors. They share the
// memory, the streams and the modules of the device's primary context.
//
// Not as on a genuine GPU: the ordinary context of a green context is the primary context itself.
#include <algorithm>

#include "tools/simulated_gpu/device/contexts.hpp"
#include "tools/simulated_gpu/device/streams.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

#if CUDA_VERSION >= 12040
namespace cuwarden::simulated_gpu {
namespace {

// Multiprocessors of a simulated device.
constexpr unsigned multiprocessors = 132;
// Device memory that each green context takes. (Measured on an H200: 4 or 6 MiB. It is never given
// back before the primary context ends, nor used again.)
constexpr std::size_t green_cost = 4 * kMiB;

CUresult find_green(Simulator& sim, CUgreenCtx handle, GreenContext*& green) {
  green = sim.green_contexts.find(handle);
  return green != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

namespace entry {

CUresult cuDeviceGetDevResource(Locked& at, CUdevice ordinal, CUdevResource* resource,
                                CUdevResourceType type) {
  if (at.sim.device(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (resource == nullptr || type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
  *resource = {};
  resource->type = type;
  resource->sm.smCount = multiprocessors;
  return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* groups, unsigned int* count,
                                     const CUdevResource* whole, CUdevResource* remaining,
                                     unsigned int, unsigned int least) {
  if (count == nullptr || whole == nullptr || whole->type != CU_DEV_RESOURCE_TYPE_SM)
    return CUDA_ERROR_INVALID_VALUE;
  // Multiprocessors are handed out by eights.
  const unsigned each = std::max(8u, (least + 7) / 8 * 8), most = whole->sm.smCount / each;
  *count = groups == nullptr ? most : std::min(*count, most);
  if (groups == nullptr) return CUDA_SUCCESS;
  if (*count == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  for (unsigned i = 0; i < *count; ++i) {
    groups[i] = *whole;
    groups[i].sm.smCount = each;
  }
  if (remaining != nullptr) {
    *remaining = *whole;
    remaining->sm.smCount -= *count * each;
  }
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource* resources,
                                   unsigned int count) {
  if (description == nullptr || resources == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  // Nothing looks into it.
  static int any;
  *description = reinterpret_cast<CUdevResourceDesc>(&any);
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(Locked& at, CUgreenCtx* out, CUdevResourceDesc description,
                          CUdevice ordinal, unsigned int flags) {
  if (out == nullptr || description == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM)
    return CUDA_ERROR_INVALID_VALUE;
  CUcontext primary = nullptr;
  SIM_TRY(entry::cuDevicePrimaryCtxRetain(at, &primary, ordinal));
  Context* const context = at.sim.contexts.find(primary);
  if (charge_context(*context, green_cost)) {
    auto green = std::make_unique<GreenContext>();
    green->device = context->device;
    *out = reinterpret_cast<CUgreenCtx>(at.sim.green_contexts.add(std::move(green)));
    return CUDA_SUCCESS;
  }
  entry::cuDevicePrimaryCtxRelease_v2(at, ordinal);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGreenCtxDestroy(Locked& at, CUgreenCtx handle) {
  GreenContext* green = nullptr;
  SIM_TRY(find_green(at.sim, handle, green));
  at.sim.green_contexts.remove(green);
  return entry::cuDevicePrimaryCtxRelease_v2(at, green->device->ordinal);
}

CUresult cuCtxFromGreenCtx(Locked& at, CUcontext* out, CUgreenCtx handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GreenContext* green = nullptr;
  SIM_TRY(find_green(at.sim, handle, green));
  *out = reinterpret_cast<CUcontext>(green->device->primary);
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(Locked& at, CUstream* out, CUgreenCtx handle, unsigned int flags,
                                int priority) {
  if (out == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  GreenContext* green = nullptr;
  SIM_TRY(find_green(at.sim, handle, green));
  Context& context = *green->device->primary;
  if (!take_object_memory(context, context.stream_memory, kStreamCost))
    return CUDA_ERROR_OUT_OF_MEMORY;
  Stream* stream = at.sim.streams.add(make_stream(context, flags, std::clamp(priority, -5, 0)));
  context.streams.insert(stream);
  *out = reinterpret_cast<CUstream>(stream);
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
#endif
