// clearing: takes its whole environment away, and then allocates.
#include <cuda_runtime_api.h>

#include <cstdlib>

int main() {
  void* memory = nullptr;
  return clearenv() == 0 && cudaMalloc(&memory, 5000) == cudaSuccess ? 0 : 3;
}
