// The program's own device code: it is registered by code that nvcc generates, before main, and
// becomes known to the driver once it is used.
#pragma once

#include "tools/simulated_gpu/runtime/runtime_state.hpp"

namespace cuwarden::simulated_runtime {

// Finds the kernel for a host stub, or for a cudaKernel_t that was given out earlier.
cudaError_t find_kernel(const void* function, CUfunction& found);

// Finds the device address and size of a registered variable.
cudaError_t find_variable(const void* symbol, CUdeviceptr& address, size_t& size);

}  // namespace cuwarden::simulated_runtime
