#include "runtime_hooks/families/pool_memory.hpp"

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/families/bodies.hpp"

namespace cuwarden::families {
namespace {

bool is_for_capture(CUresult result) {
  return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
         result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

template <class Work>
CUresult in_context(const driver::RealDriver& real, ContextId context, Work work) noexcept {
  if (real.cuCtxPushCurrent_v2 == nullptr || real.cuCtxPopCurrent_v2 == nullptr)
    return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult entered = real.cuCtxPushCurrent_v2(reinterpret_cast<CUcontext>(context.value));
  if (entered != CUDA_SUCCESS) return entered;
  const CUresult result = work();
  CUcontext popped = nullptr;
  real.cuCtxPopCurrent_v2(&popped);
  return result;
}

// All that was submitted to the context that owns the range; cuMemUnmap waits for nothing
// (measured). Any other error than that of a capture is the device's, and the program's to hear.
CUresult wait_for_device(const driver::RealDriver& real, ContextId context) noexcept {
  if (real.cuCtxSynchronize == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return in_context(real, context, [&] { return real.cuCtxSynchronize(); });
}

// The driver does not take it of mapped memory (measured), but of a context, for all that is done
// in it. That stays: others may have asked for it.
CUresult set_sync_memops(const driver::RealDriver& real, ContextId context) noexcept {
#if CUDA_VERSION >= 12010
  if (real.cuCtxGetFlags == nullptr || real.cuCtxSetFlags == nullptr)
    return CUDA_ERROR_NOT_SUPPORTED;
  return in_context(real, context, [&] {
    unsigned flags = 0;
    const CUresult got = real.cuCtxGetFlags(&flags);
    return got == CUDA_SUCCESS ? real.cuCtxSetFlags(flags | CU_CTX_SYNC_MEMOPS) : got;
  });
#else
  static_cast<void>(real), static_cast<void>(context);
  return CUDA_ERROR_NOT_SUPPORTED;
#endif
}

}  // namespace

bool is_of_pool(HookedCall& call, CUdeviceptr address) noexcept {
  return call.recording() && call.recorder().spill().ranges().starts_at(address);
}

bool is_in_pool(HookedCall& call, CUdeviceptr address) noexcept {
  return call.recording() && call.recorder().spill().ranges().around(address).has_value();
}

CUresult free_of_pool(HookedCall& call, CUdeviceptr address) noexcept {
  const ErrnoGuard keep;
  const Uncancelled whole;
  Recorder& recorder = call.recorder();
  if (recorder.place().context.value == 0) return CUDA_ERROR_INVALID_CONTEXT;
  pool::Spill& spill = recorder.spill();
  const auto range = spill.ranges().take(address);
  if (!range) return CUDA_ERROR_INVALID_VALUE;  // another thread was first
  const bool captured = recorder.captures().any();
  const CUresult waited = captured ? CUDA_SUCCESS : wait_for_device(call.real(), range->context);
  if (captured || is_for_capture(waited)) {
    spill.defer(*range);
  } else if (waited == CUDA_SUCCESS || waited == CUDA_ERROR_DEINITIALIZED) {
    spill.give_back(call.real(), *range);
  } else {
    spill.put_back(call.real(), *range);
    return waited;
  }
  recorder.ledger().unspilled(range->device, ByteCount{range->host_bytes});
  recorder.free_deferred();
  return is_for_capture(waited) ? CUDA_SUCCESS : waited;
}

// For all of an allocation.
CUresult cuPointerSetAttribute(HookedCall& call, const void* value, CUpointer_attribute attribute,
                               CUdeviceptr ptr) {
  const auto set = [&](CUdeviceptr at) {
    return call.real().cuPointerSetAttribute(value, attribute, at);
  };
  const auto range = call.recording() ? call.recorder().spill().ranges().around(ptr) : std::nullopt;
  if (!range) return set(ptr);
  if (attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && value != nullptr) {
    const ErrnoGuard keep;
    const bool on = *static_cast<const unsigned*>(value) != 0;
    const CUresult result = on ? set_sync_memops(call.real(), range->context) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) call.recorder().spill().ranges().set_sync_memops(range->start, on);
    return result;
  }
  CUdeviceptr at = range->start;
  for (std::uint32_t i = 0; i < range->piece_count; ++i) {
    if (const CUresult result = set(at); result != CUDA_SUCCESS) return result;
    at += range->piece_bytes[i];
  }
  return CUDA_SUCCESS;
}

void Recorder::free_deferred_now() noexcept {
  const ErrnoGuard keep;
  const Uncancelled whole;
  const ContextId here = contexts_.owner(place_unguarded().context);
  while (const auto range = spill_.take_deferred(here)) {
    if (wait_for_device(real_, here) == CUDA_SUCCESS) {
      spill_.give_back(real_, *range);
      continue;
    }
    spill_.defer(*range);
    return;
  }
}

}  // namespace cuwarden::families
