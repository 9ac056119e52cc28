// The runtime's own state: the thread's device and last error, primary contexts.
#pragma once

#include "tools/simulated_gpu/runtime_driver.hpp"

namespace cuwarden::simulated_runtime {

// Evaluates a cudaError_t and returns it unless it is cudaSuccess.
#define RUNTIME_TRY(expression)                                                         \
  do {                                                                                  \
    if (const cudaError_t runtime_result = (expression); runtime_result != cudaSuccess) \
      return runtime_result;                                                            \
  } while (false)

// The two enumerations have had equal values since CUDA 10.1.
inline cudaError_t error_of(CUresult result) { return static_cast<cudaError_t>(result); }

// cuInit, once.
cudaError_t initialise();
// A current context for this thread: the program's own, or its device's primary one.
cudaError_t ensure_context();
// Remembers an error for cudaGetLastError.
cudaError_t record(cudaError_t error);
cudaError_t last_error(bool clear);

int thread_device();
cudaError_t set_thread_device(int device, bool with_context);
// The primary context of the device was reset: threads bound to it take a new one.
void forget_primary(int device);
// At the end of the process: gives every primary context back.
void release_primaries();

template <typename... Parameters, typename AskedAs, typename... Arguments>
cudaError_t forward(DriverFunction<AskedAs, CUresult (*)(Parameters...)> function,
                    Arguments... arguments) {
  RUNTIME_TRY(ensure_context());
  return error_of(function(as<Parameters>(arguments)...));
}

}  // namespace cuwarden::simulated_runtime
