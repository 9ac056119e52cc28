#include "runtime_hooks/families/pool_memory.hpp"

#include "runtime_hooks/core/errno_guard.hpp"

namespace cuwarden::families {
namespace {

bool is_for_capture(CUresult result) {
  return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
         result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

// All that was submitted to the context that owns the range; cuMemUnmap waits for nothing
// (measured). Any other error than that of a capture is the device's, and the program's to hear.
CUresult wait_for_device(const driver::RealDriver& real, ContextId context) {
  if (real.cuCtxSynchronize == nullptr || real.cuCtxPushCurrent_v2 == nullptr ||
      real.cuCtxPopCurrent_v2 == nullptr)
    return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult entered = real.cuCtxPushCurrent_v2(reinterpret_cast<CUcontext>(context.value));
  if (entered != CUDA_SUCCESS) return entered;
  const CUresult result = real.cuCtxSynchronize();
  CUcontext popped = nullptr;
  real.cuCtxPopCurrent_v2(&popped);
  return result;
}

}  // namespace

bool is_of_pool(HookedCall& call, CUdeviceptr address) noexcept {
  return call.recording() && call.recorder().spill().ranges().starts_at(address);
}

CUresult free_of_pool(HookedCall& call, CUdeviceptr address) {
  Recorder& recorder = call.recorder();
  pool::Spill& spill = recorder.spill();
  const auto range = spill.ranges().take(address);
  if (!range) return CUDA_ERROR_INVALID_VALUE;  // another thread was first
  const auto gone = [&] {
    recorder.ledger().unspilled(range->device, ByteCount{range->host_bytes});
  };
  CUresult waited = CUDA_SUCCESS;
  if (!recorder.captures().any()) waited = wait_for_device(call.real(), range->context);
  if (recorder.captures().any() || is_for_capture(waited)) {
    spill.defer(*range);
    return gone(), CUDA_SUCCESS;
  }
  if (waited != CUDA_SUCCESS) {
    spill.put_back(*range);
    return waited;
  }
  const ErrnoGuard keep;
  spill.give_back(call.real(), *range);
  gone();
  free_deferred(call);
  return CUDA_SUCCESS;
}

void free_deferred(HookedCall& call) {
  if (!call.recording() || call.recorder().captures().any()) return;
  pool::Spill& spill = call.recorder().spill();
  while (const auto range = spill.take_deferred()) {
    if (wait_for_device(call.real(), range->context) == CUDA_SUCCESS) {
      spill.give_back(call.real(), *range);
      continue;
    }
    spill.defer(*range);
    return;
  }
}

}  // namespace cuwarden::families
