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

// Makes sure that the calling thread has a current context, and calls the driver's function
// `symbol`, such as cuMemAlloc_v2, with the arguments. If either fails, the function that contains
// the macro returns the error.
#define CALL(symbol, ...)                               \
  do {                                                  \
    RUNTIME_TRY(ensure_context());                      \
    RUNTIME_TRY(error_of(DRIVER(symbol)(__VA_ARGS__))); \
  } while (false)

}  // namespace cuwarden::simulated_runtime
