// Memory of cuMemCreate on device 0, and the access that programs get to it.
#pragma once

#include <cuda.h>

namespace device_mapping {

// Returns the properties of memory on device 0.
inline CUmemAllocationProp on_device() {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return prop;
}

// Returns the access by which device 0 may read and write mapped memory.
inline CUmemAccessDesc reads_and_writes() {
  CUmemAccessDesc access{};
  access.location = on_device().location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

}  // namespace device_mapping
