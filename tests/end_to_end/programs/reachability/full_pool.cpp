// Loses linear, managed and stream-ordered memory and an array, so that the search for pointers
// allocates probes of these kinds. The device's memory pool has almost no room left.
//
// Prints the bytes that the device has in use at the end.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>

#include "tests/end_to_end/programs/device_memory.hpp"

namespace {

using cuwarden::test::by_driver::used_bytes;

// The driver's memory pools grow by at least so many bytes.
constexpr std::size_t pool_chunk_bytes = std::size_t{32} << 20;

[[gnu::noinline]] bool lose_some() {
  void *device = nullptr, *managed = nullptr, *ordered = nullptr;
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc format =
      cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  return cudaMalloc(&device, 1 << 20) == cudaSuccess &&
         cudaMallocManaged(&managed, 1 << 20, cudaMemAttachGlobal) == cudaSuccess &&
         cudaMallocArray(&array, &format, 256, 256, 0) == cudaSuccess &&
         cudaMallocAsync(&ordered, pool_chunk_bytes - (1 << 20), nullptr) == cudaSuccess &&
         cudaDeviceSynchronize() == cudaSuccess;
}

}  // namespace

int main() {
  if (!lose_some()) return 1;
  std::printf("{\"used_bytes\":%lld}\n", used_bytes());
}
