// The end of a context releases what it owns: not a leak, but told apart from a free.
#include "runtime_hooks/families/bodies.hpp"

namespace cuwarden::families {
namespace {

ContextId id_of(CUcontext context) { return {reinterpret_cast<std::uint64_t>(context)}; }

// At its end the process takes everything down: then the driver no longer answers, but what the
// program asked for, in a destructor of its own, has been done.
bool has_ended(CUresult result) {
  return result == CUDA_SUCCESS || result == CUDA_ERROR_DEINITIALIZED;
}

CUresult created(HookedCall& call, CUresult result, const CUcontext* context, CUdevice device) {
  if (call.recording() && result == CUDA_SUCCESS)
    call.recorder().contexts().created(DeviceOrdinal{device}, id_of(*context));
  return result;
}

CUresult ended(HookedCall& call, CUresult result, CUcontext context) {
  if (call.recording() && has_ended(result)) call.recorder().context_ended(id_of(context));
  return result;
}

void primary_ended(HookedCall& call, DeviceOrdinal device) {
  const ContextId context = call.recorder().contexts().primary_of(device);
  if (context.value != 0) call.recorder().context_ended(context);
}

CUresult primary_reset(HookedCall& call, CUresult result, CUdevice device) {
  if (call.recording() && has_ended(result)) primary_ended(call, DeviceOrdinal{device});
  return result;
}

// A release ends the context only when it was the last. While the process ends they are cudart's,
// which releases its contexts then: no sign that the program did.
CUresult primary_released(HookedCall& call, CUresult result, CUdevice device) {
  if (!call.recording() || result != CUDA_SUCCESS || call.recorder().process_ends()) return result;
  if (!call.recorder().primary_is_active(DeviceOrdinal{device}))
    primary_ended(call, DeviceOrdinal{device});
  return result;
}

}  // namespace

CUresult cuCtxCreate(HookedCall& call, CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return created(call, call.real().cuCtxCreate(pctx, flags, dev), pctx, dev);
}

CUresult cuCtxCreate_v2(HookedCall& call, CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return created(call, call.real().cuCtxCreate_v2(pctx, flags, dev), pctx, dev);
}

CUresult cuCtxCreate_v3(HookedCall& call, CUcontext* pctx, CUexecAffinityParam* paramsArray,
                        int numParams, unsigned int flags, CUdevice dev) {
  return created(call, call.real().cuCtxCreate_v3(pctx, paramsArray, numParams, flags, dev), pctx,
                 dev);
}

#if CUDA_VERSION >= 12050
CUresult cuCtxCreate_v4(HookedCall& call, CUcontext* pctx, CUctxCreateParams* ctxCreateParams,
                        unsigned int flags, CUdevice dev) {
  return created(call, call.real().cuCtxCreate_v4(pctx, ctxCreateParams, flags, dev), pctx, dev);
}
#endif

CUresult cuDevicePrimaryCtxRetain(HookedCall& call, CUcontext* pctx, CUdevice dev) {
  const CUresult result = call.real().cuDevicePrimaryCtxRetain(pctx, dev);
  if (call.recording() && result == CUDA_SUCCESS)
    call.recorder().contexts().primary_retained(DeviceOrdinal{dev}, id_of(*pctx));
  return result;
}

#if CUDA_VERSION >= 12040
CUresult cuGreenCtxCreate(HookedCall& call, CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev,
                          unsigned int flags) {
  const CUresult result = call.real().cuGreenCtxCreate(phCtx, desc, dev, flags);
  if (call.recording() && result == CUDA_SUCCESS)
    call.recorder().contexts().green_created(reinterpret_cast<std::uint64_t>(*phCtx),
                                             DeviceOrdinal{dev});
  return result;
}

CUresult cuCtxFromGreenCtx(HookedCall& call, CUcontext* pContext, CUgreenCtx hCtx) {
  const CUresult result = call.real().cuCtxFromGreenCtx(pContext, hCtx);
  if (call.recording() && result == CUDA_SUCCESS)
    call.recorder().contexts().green_used_as(reinterpret_cast<std::uint64_t>(hCtx),
                                             id_of(*pContext));
  return result;
}

// It held its device's primary context, maybe as the last.
CUresult cuGreenCtxDestroy(HookedCall& call, CUgreenCtx hCtx) {
  const CUresult result = call.real().cuGreenCtxDestroy(hCtx);
  if (!call.recording() || result != CUDA_SUCCESS) return result;
  const DeviceOrdinal device =
      call.recorder().contexts().green_destroyed(reinterpret_cast<std::uint64_t>(hCtx));
  return device == no_device ? result : primary_released(call, result, device.value);
}
#endif

CUresult cuCtxDestroy(HookedCall& call, CUcontext ctx) {
  return ended(call, call.real().cuCtxDestroy(ctx), ctx);
}

CUresult cuCtxDestroy_v2(HookedCall& call, CUcontext ctx) {
  return ended(call, call.real().cuCtxDestroy_v2(ctx), ctx);
}

// Deprecated since CUDA 4.0; without cuCtxAttach, which is as old, it destroys the context.
CUresult cuCtxDetach(HookedCall& call, CUcontext ctx) {
  return ended(call, call.real().cuCtxDetach(ctx), ctx);
}

CUresult cuDevicePrimaryCtxRelease(HookedCall& call, CUdevice dev) {
  return primary_released(call, call.real().cuDevicePrimaryCtxRelease(dev), dev);
}

CUresult cuDevicePrimaryCtxRelease_v2(HookedCall& call, CUdevice dev) {
  return primary_released(call, call.real().cuDevicePrimaryCtxRelease_v2(dev), dev);
}

CUresult cuDevicePrimaryCtxReset(HookedCall& call, CUdevice dev) {
  return primary_reset(call, call.real().cuDevicePrimaryCtxReset(dev), dev);
}

CUresult cuDevicePrimaryCtxReset_v2(HookedCall& call, CUdevice dev) {
  return primary_reset(call, call.real().cuDevicePrimaryCtxReset_v2(dev), dev);
}

}  // namespace cuwarden::families
