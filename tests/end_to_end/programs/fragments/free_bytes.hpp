// The memory that is free on the device, for programs that fill it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

namespace fragments {

// Ends the program with status 1, and a line on stderr, if `result` is an error. `what`: the name
// of the call.
inline void require(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(result));
  std::exit(1);
}

// Returns the bytes that cudaMemGetInfo calls free on the current device.
inline std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  require(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

}  // namespace fragments
