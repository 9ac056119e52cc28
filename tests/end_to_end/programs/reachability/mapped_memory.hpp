// Virtual memory for programs that test the search for pointers to lost memory.
#pragma once

#include <cuda.h>

#include <cstddef>

// Maps 2 MiB of device 0 at a new range of addresses, and returns its address; 0 after an error.
// `releases`: true to release the handle once the memory is mapped, as most programs do.
inline CUdeviceptr map_device_memory(bool releases = false) {
  constexpr std::size_t bytes = 2 << 20;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  const bool is_mapped = cuMemCreate(&handle, bytes, &properties, 0) == CUDA_SUCCESS &&
                         cuMemAddressReserve(&address, bytes, 0, 0, 0) == CUDA_SUCCESS &&
                         cuMemMap(address, bytes, 0, handle, 0) == CUDA_SUCCESS &&
                         cuMemSetAccess(address, bytes, &access, 1) == CUDA_SUCCESS;
  if (is_mapped && releases && cuMemRelease(handle) != CUDA_SUCCESS) return 0;
  return is_mapped ? address : 0;
}

// Overwrites the stack below the caller, so that it holds no old pointers.
[[gnu::noinline]] inline void clear_stack() {
  volatile char bytes[1 << 16];
  for (volatile char& byte : bytes) byte = 1;
}
