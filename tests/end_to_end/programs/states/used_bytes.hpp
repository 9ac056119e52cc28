// Calls of the driver that end the program if they fail, and the device's used bytes as it gives
// them.
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

// Returns the used bytes of the current context's device, by all processes; ends the program if the
// driver does not tell.
inline long long used_bytes() {
  std::size_t free = 0, total = 0;
  require(cuMemGetInfo(&free, &total), "cuMemGetInfo");
  return static_cast<long long>(total - free);
}
