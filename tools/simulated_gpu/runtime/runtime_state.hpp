// The state of the simulated runtime (libcudart): each thread's device and last error, and the
// primary contexts that the runtime has retained.
#pragma once

#include "tools/simulated_gpu/runtime/runtime_driver.hpp"

namespace cuwarden::simulated_runtime {

// Evaluates a cudaError_t; returns it from the calling function unless it is cudaSuccess.
#define RUNTIME_TRY(expression)                                                         \
  do {                                                                                  \
    if (const cudaError_t runtime_result = (expression); runtime_result != cudaSuccess) \
      return runtime_result;                                                            \
  } while (false)

// Returns the runtime's error (cudaError_t) for a result of the driver. Since CUDA 10.1 both
// enumerations have equal values.
inline cudaError_t error_of(CUresult result) { return static_cast<cudaError_t>(result); }

// Calls cuInit when called for the first time in the process. Every call returns the result of that
// cuInit, or cudaErrorInsufficientDriver if there is no driver.
cudaError_t initialise();
// Makes sure that the calling thread has a current context. A context that the program made current
// stays; otherwise the primary context of the thread's device becomes current, and is made if
// needed. Returns cudaSuccess, the error of initialise(), or the error of another driver call that
// failed.
cudaError_t ensure_context();
// Stores `error` as the calling thread's last error, for cudaGetLastError, unless it is
// cudaSuccess. Returns `error`.
cudaError_t record(cudaError_t error);
// Returns the calling thread's last error; cudaSuccess if there is none. `clear`: true to set it to
// cudaSuccess, as cudaGetLastError does.
cudaError_t last_error(bool clear);

// Returns the ordinal of the calling thread's device (cudaSetDevice); 0 at first.
int thread_device();
// Sets the calling thread's device. `device`: CUDA ordinal. `with_context`: true to also make the
// device's primary context current. Returns cudaErrorInvalidDevice, and changes nothing, if there
// is no such device; also changes nothing if initialise() fails, and returns its error. If the
// context cannot be made current, returns that error, but the device is set.
cudaError_t set_thread_device(int device, bool with_context);
// Forgets that the runtime has retained the device's primary context, because the program has reset
// the device (cudaDeviceReset). A thread in which the old context is current retains a new one at
// its next call. `device`: CUDA ordinal.
void forget_primary(int device);
// Releases every primary context that the runtime has retained. Called when the process ends.
void release_primaries();

// Does the work of a runtime function that has the same parameters as the driver's `function`.
// Makes sure that the calling thread has a current context, then calls `function` with the
// arguments, each converted to the driver's type by as(). Returns cudaSuccess or the error of
// either step.
template <typename... Parameters, typename AskedAs, typename... Arguments>
cudaError_t forward(DriverFunction<AskedAs, CUresult (*)(Parameters...)> function,
                    Arguments... arguments) {
  RUNTIME_TRY(ensure_context());
  return error_of(function(as<Parameters>(arguments)...));
}

}  // namespace cuwarden::simulated_runtime
