// Texture and surface objects, by which kernels read arrays and linear memory. They own no memory
// of the program's, but the driver takes device memory for many of them. (Measured: the 57,344th
// was refused on a full device.)
#include "runtime_hooks/hooks/call/hooks.hpp"

namespace cuwarden::hooks {

CUresult cuTexObjectCreate(HookedCall& call, CUtexObject* pTexObject,
                           const CUDA_RESOURCE_DESC* pResDesc, const CUDA_TEXTURE_DESC* pTexDesc,
                           const CUDA_RESOURCE_VIEW_DESC* pResViewDesc) {
  const auto attempt = [&] {
    return call.real().cuTexObjectCreate(pTexObject, pResDesc, pTexDesc, pResViewDesc);
  };
  return call.rescued(attempt(), {ledger::Asked::texture}, attempt);
}

CUresult cuSurfObjectCreate(HookedCall& call, CUsurfObject* pSurfObject,
                            const CUDA_RESOURCE_DESC* pResDesc) {
  const auto attempt = [&] { return call.real().cuSurfObjectCreate(pSurfObject, pResDesc); };
  return call.rescued(attempt(), {ledger::Asked::texture}, attempt);
}

}  // namespace cuwarden::hooks
