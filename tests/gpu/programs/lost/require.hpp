// Ends a program whose call of a CUDA library has failed. The libraries' success is 0.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

// Ends the program with status 3, and a line on stderr, unless `status` is 0 (success). `Status`:
// result type of a CUDA library's functions.
template <class Status>
void require(Status status) {
  if (static_cast<int>(status) == 0) return;
  std::fprintf(stderr, "a call failed with status %d\n", static_cast<int>(status));
  std::exit(3);
}
