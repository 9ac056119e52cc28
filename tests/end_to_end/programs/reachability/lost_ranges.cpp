// Loses mapped virtual memory. The driver keeps a list of ranges of addresses. Its entries are not
// the program's pointers, so the mappings are lost.
//
// Prints how many mappings were lost.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>

namespace {

[[gnu::noinline]] bool lose() {
  constexpr std::size_t bytes = 2 << 20;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  return cuMemCreate(&handle, bytes, &properties, 0) == CUDA_SUCCESS &&
         cuMemAddressReserve(&address, bytes, 0, 0, 0) == CUDA_SUCCESS &&
         cuMemMap(address, bytes, 0, handle, 0) == CUDA_SUCCESS &&
         cuMemSetAccess(address, bytes, &access, 1) == CUDA_SUCCESS;
}

[[gnu::noinline]] void clear_stack() {
  volatile char bytes[1 << 16];
  for (volatile char& byte : bytes) byte = 1;
}

}  // namespace

int main() {
  if (cudaFree(nullptr) != cudaSuccess) return 1;
  int lost = 0;
  for (; lost < 20; ++lost)
    if (!lose()) return 1;
  clear_stack();
  std::printf("{\"lost\":%d}\n", lost);
}
