// Whether a context has nothing to do.
#pragma once

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::driver {

// Whether the driver can say that (CUDA 12.5).
inline bool can_tell_idle([[maybe_unused]] const RealDriver& real) noexcept {
#if CUDA_VERSION >= 12050
  return real.cuCtxRecordEvent != nullptr && real.cuEventCreate != nullptr &&
         real.cuEventQuery != nullptr && real.cuEventDestroy_v2 != nullptr;
#else
  return false;
#endif
}

// Of the current context, `context`, whatever stream it was submitted to. A capture in one of its
// streams would be ended by the question (cuda.h, cuCtxRecordEvent): there must be none. False also
// where the driver cannot say.
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

}  // namespace cuwarden::driver
