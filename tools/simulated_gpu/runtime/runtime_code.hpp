// Finds the kernels and variables of the device code inside the program, for the simulated runtime
// (libcudart). Host code that nvcc generates registers the device code before main(). The runtime
// loads it into the driver when the program first uses it.
#pragma once

#include "tools/simulated_gpu/runtime/runtime_state.hpp"

namespace cuwarden::simulated_runtime {

// Sets `found` to the driver's function for a kernel, and loads the kernel's code into the driver
// if needed. First makes a context current if the calling thread has none (ensure_context()).
// `function`: the address of the kernel's host function (as in kernel<<<...>>>), or a cudaKernel_t
// that the runtime gave to the program. Returns cudaErrorInvalidDeviceFunction if there is no such
// kernel, or the error of ensure_context() or of a driver call that failed.
cudaError_t find_kernel(const void* function, CUfunction& found);

// Sets `address` and `size` (bytes) to those of a __device__ variable in device memory. First makes
// a context current if the calling thread has none (ensure_context()). `symbol`: host address of
// the variable's shadow, by which nvcc has registered the variable. Returns cudaErrorInvalidSymbol
// if there is no such variable, or the error of ensure_context() or of a driver call that failed.
// Returns cudaErrorNotSupported, after setting both, if the variable is larger than the 64 KiB that
// the simulated driver gives to each.
cudaError_t find_variable(const void* symbol, CUdeviceptr& address, size_t& size);

}  // namespace cuwarden::simulated_runtime
