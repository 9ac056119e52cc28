// Tells whether a CUDA context has unfinished work, and waits for that work.
#pragma once

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/driver/inside_context.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::driver {

// Returns true if the driver has the functions by which is_idle() finds out if a context has
// unfinished work (since CUDA 12.5). Returns false if cuwarden was built with an older CUDA.
inline bool can_tell_idle([[maybe_unused]] const RealDriver& real) noexcept {
#if CUDA_VERSION >= 12050
  return real.cuCtxRecordEvent != nullptr && real.cuEventCreate != nullptr &&
         real.cuEventQuery != nullptr && real.cuEventDestroy_v2 != nullptr;
#else
  return false;
#endif
}

// Returns true if `context`, which must be current, has no unfinished work in any stream. Returns
// false also if the driver gives an error or cannot tell (before CUDA 12.5). To be called only
// while no stream of the context is being captured: the question would end the capture (cuda.h,
// cuCtxRecordEvent).
inline bool is_idle([[maybe_unused]] const RealDriver& real,
                    [[maybe_unused]] ContextId context) noexcept {
#if CUDA_VERSION >= 12050
  if (!can_tell_idle(real)) return false;
  CUevent event = nullptr;
  if (real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return false;
  const bool idle =
      real.cuCtxRecordEvent(reinterpret_cast<CUcontext>(context.value), event) == CUDA_SUCCESS &&
      real.cuEventQuery(event) == CUDA_SUCCESS;
  real.cuEventDestroy_v2(event);
  return idle;
#else
  return false;
#endif
}

// Waits until all work that was submitted to the context, which need not be current, is done. Must
// be called before cuMemUnmap, which does not wait (measured).
//
// To be called only if no capture is in progress, that is, after Captures::begin_wait() has
// returned true. (wait_beside_captures() can wait during captures.) A capture in a stream of the
// context would be ended, and the result would be an error about the capture.
//
// Returns the result of cuCtxSynchronize, or the error with which the context could not be made
// current; CUDA_ERROR_NOT_SUPPORTED if the driver lacks a function. A hook that frees memory must
// pass any error that is not about a capture on to the program.
inline CUresult wait_for_context(const RealDriver& real, ContextId context) noexcept {
  if (real.cuCtxSynchronize == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return in_context(real, context, [&] { return real.cuCtxSynchronize(); });
}

// Waits until all work that was submitted to the context, which need not be current, is done.
// Unlike wait_for_context(), ends no stream capture. Makes and frees a small allocation: before
// that free, the driver waits for the context's work (measured, with captures in any mode). On a
// full device, makes and frees a page of page-locked host memory instead. The driver waits before
// that free, too; both calls take a millisecond together. Returns the driver's result:
// CUDA_ERROR_OUT_OF_MEMORY, without a wait, if there is no memory for either. Returns
// CUDA_ERROR_NOT_SUPPORTED, without a wait, if the driver lacks a function or cannot change the
// thread's capture mode.
inline CUresult wait_beside_captures(const RealDriver& real, ContextId context) noexcept {
  const RelaxedCaptures relaxed(real);
  if (!relaxed || real.cuMemAlloc_v2 == nullptr || real.cuMemFree_v2 == nullptr ||
      real.cuMemHostAlloc == nullptr || real.cuMemFreeHost == nullptr)
    return CUDA_ERROR_NOT_SUPPORTED;
  return in_context(real, context, [&] {
    CUdeviceptr small = 0;
    CUresult allocated = real.cuMemAlloc_v2(&small, 1);
    if (allocated == CUDA_SUCCESS) return real.cuMemFree_v2(small);
    void* locked = nullptr;
    if (allocated == CUDA_ERROR_OUT_OF_MEMORY) allocated = real.cuMemHostAlloc(&locked, 1, 0);
    return allocated == CUDA_SUCCESS ? real.cuMemFreeHost(locked) : allocated;
  });
}

}  // namespace cuwarden::driver
