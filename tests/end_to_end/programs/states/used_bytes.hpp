// Ends the program if a call of the driver fails; reads the used bytes of the device from the
// driver.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

// Ends the program with status 1 and a line on stderr unless `result` is CUDA_SUCCESS. `what`: the
// name of the call.
inline void require(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: error %d\n", what, static_cast<int>(result));
  std::exit(1);
}

// Returns the bytes of the current context's device that all processes together use, as
// cuMemGetInfo gives them. Ends the program if that call fails.
inline long long used_bytes() {
  std::size_t free = 0, total = 0;
  require(cuMemGetInfo(&free, &total), "cuMemGetInfo");
  return static_cast<long long>(total - free);
}
