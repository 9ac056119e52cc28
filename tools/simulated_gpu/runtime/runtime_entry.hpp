// Included by the runtime's files of entry points.
#pragma once

#include "runtime_entries.hpp"
#include "tools/simulated_gpu/runtime/runtime_driver.hpp"
#include "tools/simulated_gpu/runtime/runtime_state.hpp"

namespace cuwarden::simulated_runtime {

inline CUdeviceptr device_address(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

// Makes the thread's context ready, calls the driver function, and returns from the caller on an
// error.
#define CALL(symbol, ...)                               \
  do {                                                  \
    RUNTIME_TRY(ensure_context());                      \
    RUNTIME_TRY(error_of(DRIVER(symbol)(__VA_ARGS__))); \
  } while (false)

}  // namespace cuwarden::simulated_runtime
