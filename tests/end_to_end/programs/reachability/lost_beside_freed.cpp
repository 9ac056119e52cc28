// Loses stream-ordered blocks. Frees a large block of device memory before the end, whose addresses
// the driver may use for memory pools later.
//
// Prints how many blocks were lost.
#include <cuda_runtime_api.h>

#include <cstdio>

namespace {

constexpr int blocks = 60;

[[gnu::noinline]] bool lose() {
  void* block = nullptr;
  const bool made = cudaMallocAsync(&block, 64 << 10, nullptr) == cudaSuccess;
  block = nullptr;
  return made;
}

}  // namespace

int main() {
  void* large = nullptr;
  for (int i = 0; i < blocks; ++i) {
    if (i == 1 && cudaMalloc(&large, 8 << 20) != cudaSuccess) return 1;
    if (!lose()) return 1;
  }
  if (cudaFree(large) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) return 1;
  std::printf("{\"lost\":%d}\n", blocks);
}
