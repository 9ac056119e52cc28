// Hooks of the calls that make and destroy memory pools (CUmemoryPool).
#include "runtime_hooks/hooks/call/hooks.hpp"

namespace cuwarden::hooks {
namespace {

using tracking::MemoryPools;

bool is_plain(const CUmemPoolProps& properties) {
#if CUDA_VERSION >= 12030
  if (properties.maxSize != 0) return false;
#endif
  return properties.handleTypes == CU_MEM_HANDLE_TYPE_NONE;
}

}  // namespace

CUresult cuMemPoolCreate(HookedCall& call, CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  const CUresult result = call.real().cuMemPoolCreate(pool, poolProps);
  if (call.recording() && result == CUDA_SUCCESS &&
      poolProps->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
    call.memory().memory_pools.created({*pool, poolProps->location.id, is_plain(*poolProps)});
  return result;
}

CUresult cuMemPoolDestroy(HookedCall& call, CUmemoryPool pool) {
  if (!call.recording()) return call.real().cuMemPoolDestroy(pool);
  const MemoryPools::Pool known = call.memory().memory_pools.destroy_begin(pool);
  const CUresult result = call.real().cuMemPoolDestroy(pool);
  if (result != CUDA_SUCCESS) call.memory().memory_pools.created(known);
  return result;
}

}  // namespace cuwarden::hooks
