// The program's own device code: what nvcc's generated code registers before main, and
// what the driver knows of it once it is used.
#pragma once

#include "tools/simulated_gpu/runtime_state.hpp"

namespace cuwarden::simulated_runtime {

// The kernel behind a host stub, or behind a cudaKernel_t that was given out earlier.
cudaError_t find_kernel(const void* function, CUfunction& found);

// The device address and size of a registered variable.
cudaError_t find_variable(const void* symbol, CUdeviceptr& address, size_t& size);

}  // namespace cuwarden::simulated_runtime
