// Managed (unified) memory; freed by cuMemFree.
#include "runtime_hooks/families/bodies.hpp"

namespace cuwarden::families {

CUresult cuMemAllocManaged(HookedCall& call, CUdeviceptr* dptr, size_t bytesize,
                           unsigned int flags) {
  const CUresult result = call.real().cuMemAllocManaged(dptr, bytesize, flags);
  call.allocated(result, {.kind = Kind::managed,
                          .address = result == CUDA_SUCCESS ? *dptr : 0,
                          .bytes = bytesize,
                          .owned_by_context = true});
  return result;
}

}  // namespace cuwarden::families
