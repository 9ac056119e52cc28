// Attributes of pointers that the program sets.
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/driver/inside_context.hpp"
#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/serving/pool_memory.hpp"

namespace cuwarden::hooks {
namespace {

// Makes memory operations in the context synchronous. The driver refuses SYNC_MEMOPS for mapped
// memory (measured), which the memory of cuwarden's pool is, but accepts it for a whole context. It
// is never switched off again, since other pointers may need it.
CUresult set_sync_memops(const driver::RealDriver& real, ContextId context) noexcept {
#if CUDA_VERSION >= 12010
  if (real.cuCtxGetFlags == nullptr || real.cuCtxSetFlags == nullptr)
    return CUDA_ERROR_NOT_SUPPORTED;
  return driver::in_context(real, context, [&] {
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

CUresult cuPointerSetAttribute(HookedCall& call, const void* value, CUpointer_attribute attribute,
                               CUdeviceptr ptr) {
  const auto set = [&](CUdeviceptr at) {
    return call.real().cuPointerSetAttribute(value, attribute, at);
  };
  serving::ServingPools* const pools = serving::serving_pools.load(std::memory_order_acquire);
  if (pools == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || value == nullptr)
    return set(ptr);
  const ErrnoGuard keep;
  const auto memory = serving::pool_memory_around(*pools, ptr);
  if (!memory || memory->is_pinned) return set(ptr);
  const bool on = *static_cast<const unsigned*>(value) != 0;
  const CUresult result = on ? set_sync_memops(call.real(), memory->context) : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) serving::note_sync_memops(*pools, memory->start, on);
  return result;
}

}  // namespace cuwarden::hooks
