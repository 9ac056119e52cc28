// Entry points for contexts: primary and own ones, the thread's stack of contexts, limits, peers.
#include "tools/simulated_gpu/device/graphs.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

// Makes the context the thread's current one, in place of the one before.
void set_top(Context* context) {
  ThreadState& thread = thread_state();
  if (thread.depth == 0) ++thread.depth;
  thread.stack[thread.depth - 1] = context;
}

bool push(Context* context) {
  ThreadState& thread = thread_state();
  if (thread.depth == ThreadState::kDepth) return false;
  thread.stack[thread.depth++] = context;
  return true;
}

CUresult create(CUcontext* out, unsigned flags, CUdevice ordinal, unsigned api_version) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Locked at;
  Device* device = at.sim.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  SIM_TRY(refuse_under_capture(at.sim));
  Context* made = nullptr;
  SIM_TRY(make_context(*device, flags, false, made));
  made->api_version = api_version;
  if (!push(made)) {
    end_context(*made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = reinterpret_cast<CUcontext>(made);
  return CUDA_SUCCESS;
}

CUresult find(Locked& at, CUcontext handle, Context*& context) {
  if (handle == nullptr) return current_context(context);
  context = at.sim.contexts.find(handle);
  if (context != nullptr) return CUDA_SUCCESS;
  return at.sim.contexts.was(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

namespace entry {

CUresult cuDevicePrimaryCtxRetain(Locked& at, CUcontext* out, CUdevice ordinal) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Device* device = at.sim.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (device->primary == nullptr) {
    SIM_TRY(make_context(*device, device->primary_flags, true, device->primary));
    device->primary_references = 0;
  }
  ++device->primary_references;
  *out = reinterpret_cast<CUcontext>(device->primary);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(Locked& at, CUdevice ordinal) {
  Device* device = at.sim.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (device->primary == nullptr) return CUDA_SUCCESS;
  Context& context = *device->primary;
  wait_for(at.lock, context);
  if (context.destroyed) return CUDA_SUCCESS;
  end_context(context);
  device->primary = nullptr;
  device->primary_references = 0;
  // Memory of the device's pools stays, because pools belong to the device and not to a context.
  // (Measured: 512 MiB from cudaMallocAsync are still held after cudaDeviceReset, until they are
  // freed.)
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(Locked& at, CUdevice ordinal) {
  Device* device = at.sim.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (device->primary == nullptr || device->primary_references == 0) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (--device->primary_references > 0) return CUDA_SUCCESS;
  return cuDevicePrimaryCtxReset_v2(at, ordinal);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(Locked& at, CUdevice ordinal, unsigned int flags) {
  Device* device = at.sim.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  device->primary_flags = flags;
  if (device->primary != nullptr) device->primary->flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(Locked& at, CUdevice ordinal, unsigned int* flags,
                                    int* active) {
  Device* device = at.sim.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (flags != nullptr) *flags = device->primary_flags;
  if (active != nullptr) *active = device->primary != nullptr;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext* out, unsigned int flags, CUdevice device) {
  return create(out, flags, device, 3010);
}

CUresult cuCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice device) {
  return create(out, flags, device, 3020);
}

CUresult cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam* affinity, int count,
                        unsigned int flags, CUdevice device) {
  if (count != 0 && affinity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return create(out, flags, device, 3020);
}

CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams*, unsigned int flags, CUdevice device) {
  return create(out, flags, device, 3020);
}

CUresult cuCtxDestroy_v2(Locked& at, CUcontext handle) {
  Context* context = nullptr;
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  SIM_TRY(find(at, handle, context));
  if (context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  wait_for(at.lock, *context);
  if (context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  end_context(*context);
  ThreadState& thread = thread_state();
  if (thread.depth > 0 && thread.stack[thread.depth - 1] == context) --thread.depth;
  return CUDA_SUCCESS;
}

CUresult cuCtxAttach(CUcontext* out, unsigned int flags) {
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  InContext at;
  SIM_TRY(at.error);
  *out = reinterpret_cast<CUcontext>(at.context);
  return CUDA_SUCCESS;
}

CUresult cuCtxDetach(Locked& at, CUcontext handle) { return entry::cuCtxDestroy_v2(at, handle); }

CUresult cuCtxPushCurrent_v2(Locked& at, CUcontext handle) {
  Context* context = nullptr;
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  SIM_TRY(find(at, handle, context));
  return push(context) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuCtxPopCurrent_v2(CUcontext* out) {
  ThreadState& thread = thread_state();
  if (thread.depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  Context* const top = thread.stack[--thread.depth];
  if (out != nullptr) *out = reinterpret_cast<CUcontext>(top);
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle) {
  ThreadState& thread = thread_state();
  if (handle == nullptr) {
    if (thread.depth > 0) --thread.depth;
    return CUDA_SUCCESS;
  }
  Locked at;
  Context* context = nullptr;
  SIM_TRY(find(at, handle, context));
  set_top(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ThreadState& thread = thread_state();
  *out = thread.depth == 0 ? nullptr : reinterpret_cast<CUcontext>(thread.stack[thread.depth - 1]);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  InContext at;
  SIM_TRY(at.error);
  *device = at.context->device->ordinal;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(Locked& at, CUdevice* device, CUcontext handle) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  SIM_TRY(find(at, handle, context));
  *device = context->device->ordinal;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  InContext at;
  SIM_TRY(at.error);
  *flags = at.context->flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(InContext& at, unsigned int flags) {
  at.context->flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(Locked& at, CUcontext handle, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  SIM_TRY(find(at, handle, context));
  *id = context->id;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(Locked& at, CUcontext handle, unsigned int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  SIM_TRY(find(at, handle, context));
  *version = context->api_version;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(Locked& at, CUcontext handle) {
  Context* context = nullptr;
  SIM_TRY(find(at, handle, context));
  if (invalidate_captures(*context)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  wait_for(at.lock, *context);
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(Locked& at) { return entry::cuCtxSynchronize_v2(at, nullptr); }

CUresult cuCtxSetLimit(InContext& at, CUlimit limit, size_t value) {
  const auto known = at.context->limits.find(limit);
  if (known == at.context->limits.end()) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  // Memory for the stack is taken or given back at once. Memory for the heap is taken by the first
  // launch of a kernel that needs it; from then on its limit cannot be changed.
  if (limit == CU_LIMIT_STACK_SIZE) {
    SIM_TRY(take_local_memory(*at.context, value));
    shrink_local_memory(*at.context, value);
  }
  if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && at.context->heap_made) return CUDA_ERROR_INVALID_VALUE;
  known->second = value;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  InContext at;
  SIM_TRY(at.error);
  const auto known = at.context->limits.find(limit);
  if (known == at.context->limits.end()) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = known->second;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  InContext at;
  SIM_TRY(at.error);
  *config = at.context->cache_config;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(InContext& at, CUfunc_cache config) {
  at.context->cache_config = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  InContext at;
  SIM_TRY(at.error);
  *config = at.context->shared_config;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(InContext& at, CUsharedconfig config) {
  at.context->shared_config = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(InContext&, int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache() { return InContext().error; }

CUresult cuCtxEnablePeerAccess(InContext& at, CUcontext handle, unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* peer = at.sim.contexts.find(handle);
  if (peer == nullptr || peer == at.context) return CUDA_ERROR_INVALID_CONTEXT;
  if (peer->device == at.context->device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  return at.context->peers.insert(peer->device->ordinal).second
             ? CUDA_SUCCESS
             : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult cuCtxDisablePeerAccess(InContext& at, CUcontext handle) {
  Context* peer = at.sim.contexts.find(handle);
  if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return at.context->peers.erase(peer->device->ordinal) != 0 ? CUDA_SUCCESS
                                                             : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
