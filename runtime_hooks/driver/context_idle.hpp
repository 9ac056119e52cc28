// Idle contexts: found by a question, or by a wait.
#pragma once

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/inside_context.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::driver {

// Returns true if the driver can say that a context is idle (CUDA 12.5).
inline bool can_tell_idle([[maybe_unused]] const RealDriver& real) noexcept {
#if CUDA_VERSION >= 12050
  return real.cuCtxRecordEvent != nullptr && real.cuEventCreate != nullptr &&
         real.cuEventQuery != nullptr && real.cuEventDestroy_v2 != nullptr;
#else
  return false;
#endif
}

// Returns true if the current context, `context`, has no work in any stream; false also where the
// driver cannot say. No stream of the context may be captured: the question would end the capture
// (cuda.h, cuCtxRecordEvent).
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

// Waits for all that was submitted to the context; cuMemUnmap waits for nothing (measured). Returns
// the driver's error. Any error but that of a capture is about the device, and the program must get
// it.
inline CUresult wait_for_context(const RealDriver& real, ContextId context) noexcept {
  if (real.cuCtxSynchronize == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return in_context(real, context, [&] { return real.cuCtxSynchronize(); });
}

}  // namespace cuwarden::driver
