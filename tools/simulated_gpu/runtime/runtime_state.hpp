// The runtime's own state: the thread's device and last error, and the primary contexts.
#pragma once

#include "tools/simulated_gpu/runtime/runtime_driver.hpp"

namespace cuwarden::simulated_runtime {

// Evaluates a cudaError_t and returns it unless it is cudaSuccess.
#define RUNTIME_TRY(expression)                                                         \
  do {                                                                                  \
    if (const cudaError_t runtime_result = (expression); runtime_result != cudaSuccess) \
      return runtime_result;                                                            \
  } while (false)

// Converts a driver's error. The two enumerations have had equal values since CUDA 10.1.
inline cudaError_t error_of(CUresult result) { return static_cast<cudaError_t>(result); }

// Calls cuInit, once.
cudaError_t initialise();
// Makes sure that the thread has a current context: the program's own, or the primary one of its
// device.
cudaError_t ensure_context();
// Remembers an error for cudaGetLastError, and returns it.
cudaError_t record(cudaError_t error);
// Returns the error that the thread remembers, and forgets it if `clear`.
cudaError_t last_error(bool clear);

int thread_device();
cudaError_t set_thread_device(int device, bool with_context);
// Forgets a primary context that was reset: threads bound to it take a new one.
void forget_primary(int device);
// Gives every primary context back, at the end of the process.
void release_primaries();

// Calls a driver function whose parameters equal the runtime function's up to the names of types.
template <typename... Parameters, typename AskedAs, typename... Arguments>
cudaError_t forward(DriverFunction<AskedAs, CUresult (*)(Parameters...)> function,
                    Arguments... arguments) {
  RUNTIME_TRY(ensure_context());
  return error_of(function(as<Parameters>(arguments)...));
}

}  // namespace cuwarden::simulated_runtime
