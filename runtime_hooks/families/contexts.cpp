// The end of a context releases what it owns: not a leak, but told apart from a free.
#include "runtime_hooks/families/bodies.hpp"

namespace cuwarden::families {
namespace {

// Primary contexts by device, as their Retain gave them: no call tells them without side effects.
constinit std::atomic<std::uint64_t> primary_contexts[64] = {};

std::atomic<std::uint64_t>* primary_of(CUdevice device) {
  return device >= 0 && device < 64 ? &primary_contexts[device] : nullptr;
}

CUresult ended(HookedCall& call, CUresult result, CUcontext context) {
  if (call.recording() && result == CUDA_SUCCESS)
    call.recorder().context_ended(ContextId{reinterpret_cast<std::uint64_t>(context)});
  return result;
}

CUresult primary_reset(HookedCall& call, CUresult result, CUdevice device) {
  auto* primary = primary_of(device);
  if (!call.recording() || result != CUDA_SUCCESS || primary == nullptr) return result;
  const std::uint64_t context = primary->load(std::memory_order_relaxed);
  if (context != 0) call.recorder().context_ended(ContextId{context});
  return result;
}

// A release ends the context only when it was the last.
CUresult primary_released(HookedCall& call, CUresult result, CUdevice device) {
  if (!call.recording() || result != CUDA_SUCCESS) return result;
  unsigned int flags = 0;
  int active = 1;
  if (call.real().cuDevicePrimaryCtxGetState != nullptr &&
      call.real().cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS &&
      active == 0)
    return primary_reset(call, result, device);
  return result;
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(HookedCall& call, CUcontext* pctx, CUdevice dev) {
  const CUresult result = call.real().cuDevicePrimaryCtxRetain(pctx, dev);
  auto* primary = primary_of(dev);
  if (result == CUDA_SUCCESS && primary != nullptr)
    primary->store(reinterpret_cast<std::uint64_t>(*pctx), std::memory_order_relaxed);
  return result;
}

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
