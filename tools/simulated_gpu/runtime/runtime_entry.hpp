// Included by the files with the exported functions (entry points) of the simulated runtime.
#pragma once

#include "runtime_entries.hpp"
#include "tools/simulated_gpu/runtime/runtime_driver.hpp"
#include "tools/simulated_gpu/runtime/runtime_state.hpp"

namespace cuwarden::simulated_runtime {

// Converts a pointer of the runtime into device memory to the driver's type for it.
inline CUdeviceptr device_address(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

// Makes sure that the calling thread has a current context, and calls the driver's function
// `symbol` with the arguments. If either fails, returns the cudaError_t from the function in which
// the macro stands.
#define CALL(symbol, ...)                               \
  do {                                                  \
    RUNTIME_TRY(ensure_context());                      \
    RUNTIME_TRY(error_of(DRIVER(symbol)(__VA_ARGS__))); \
  } while (false)

}  // namespace cuwarden::simulated_runtime
