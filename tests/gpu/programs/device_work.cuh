// Work on memory of any kind: a kernel fills it with values that the host can compute, too. The
// printed line says if the values that came back are the host's. It is the same with and without
// the shim; figures of memory go on lines that begin with "memory:".
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <vector>

#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/expected_totals.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace work {

using cuwarden::test::used_bytes;

// Returns the value of word i.
__host__ __device__ inline unsigned value(unsigned seed, std::size_t i) {
  unsigned x = static_cast<unsigned>(i) * 2654435761u + seed;
  for (int round = 0; round < 4; ++round) x = (x ^ (x >> 15)) * 0x2c1b3c6du;
  return x;
}

static __global__ void fill(unsigned* data, std::size_t count, unsigned seed) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
    data[i] = value(seed, i);
}

// Prints a checksum of the words, and "yes" if they are as the host computes them.
inline void print_checksum(const char* name, const std::vector<unsigned>& got, unsigned seed) {
  unsigned sum = 2166136261u;
  bool as_the_host = true;
  for (std::size_t i = 0; i < got.size(); ++i) {
    sum = (sum ^ got[i]) * 16777619u;
    as_the_host = as_the_host && got[i] == value(seed, i);
  }
  std::printf("checksum %s: %08x, as the host computes it: %s\n", name, sum,
              as_the_host ? "yes" : "no");
}

// Fills memory (device, pinned, registered or managed) of at least `count` words, and checks it.
inline void fill_and_check(const char* name, void* memory, std::size_t count, unsigned seed,
                           cudaStream_t stream = nullptr) {
  auto* data = static_cast<unsigned*>(memory);
  fill<<<64, 256, 0, stream>>>(data, count, seed);
  REQUIRE(cudaGetLastError());
  std::vector<unsigned> got(count);
  REQUIRE(cudaMemcpyAsync(got.data(), data, count * sizeof(unsigned), cudaMemcpyDefault, stream));
  REQUIRE(cudaStreamSynchronize(stream));
  print_checksum(name, got, seed);
}

// Makes the context, the module and the kernel's own memory before anything is measured. Returns
// the bytes in use then.
inline long long warm_up() {
  REQUIRE(cudaFree(nullptr));
  fill<<<64, 256>>>(nullptr, 0, 0);
  REQUIRE(cudaGetLastError());
  REQUIRE(cudaDeviceSynchronize());
  return used_bytes();
}

}  // namespace work
