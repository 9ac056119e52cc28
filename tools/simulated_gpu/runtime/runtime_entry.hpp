// Included by the files with the exported functions (entry points) of the simulated runtime.
#pragma once

#include "runtime_entries.hpp"
#include "tools/simulated_gpu/runtime/runtime_driver.hpp"
#include "tools/simulated_gpu/runtime/runtime_state.hpp"

namespace cuwarden::simulated_runtime {

// Converts a pointer to device memory from the runtime's type to the driver's.
inline CUdeviceptr device_address(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

}  // namespace cuwarden::simulated_runtime
