// Managed (unified) memory; freed by cuMemFree.
#include "runtime_hooks/hooks/call/hooks.hpp"

namespace cuwarden::hooks {

CUresult cuMemAllocManaged(HookedCall& call, CUdeviceptr* dptr, size_t bytesize,
                           unsigned int flags) {
  Allocation managed{.kind = Kind::managed, .bytes = bytesize, .owned_by_context = true};
  const CUresult result =
      call.allocate(managed, [&] { return call.real().cuMemAllocManaged(dptr, bytesize, flags); });
  if (result == CUDA_SUCCESS) managed.address = *dptr;
  call.allocated(result, managed);
  return result;
}

}  // namespace cuwarden::hooks
