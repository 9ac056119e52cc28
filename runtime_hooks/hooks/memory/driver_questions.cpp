#include "runtime_hooks/hooks/memory/driver_questions.hpp"

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden::hooks {

std::uint64_t extent_of(HookedCall& call, CUdeviceptr pointer) {
  const ErrnoGuard keep;
  CUdeviceptr base = 0;
  size_t bytes = 0;
  if (call.real().cuMemGetAddressRange_v2 == nullptr ||
      call.real().cuMemGetAddressRange_v2(&base, &bytes, pointer) != CUDA_SUCCESS)
    return 0;
  return bytes;
}

bool is_capturing(HookedCall& call, CUstream stream,
                  CUresult(CUDAAPI* query)(CUstream, CUstreamCaptureStatus*)) {
  if (!call.recording() || !call.memory().captures.seen() || query == nullptr) return false;
  const ErrnoGuard keep;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return query(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace cuwarden::hooks
