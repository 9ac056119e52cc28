// Kernels that write and read all of a large block of memory: each eight bytes get a value of their
// own.
#pragma once

#include <chrono>
#include <cstdint>

#include "tests/gpu/programs/device_work.cuh"

namespace wide {

// Returns the value of the eight bytes at this index.
__device__ __host__ inline std::uint64_t value_at(std::uint64_t index) {
  std::uint64_t value = index * 0x9e3779b97f4a7c15u + 1;
  value ^= value >> 29;
  return value * 0xbf58476d1ce4e5b9u;
}

// Writes `count` values, from the one of index `first` on.
static __global__ void write_all(std::uint64_t* data, std::size_t count, std::uint64_t first) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    data[i] = value_at(first + i);
}

// Adds to `wrong` how many values differ from those of index `first` and after.
static __global__ void count_wrong(const std::uint64_t* data, std::size_t count,
                                   std::uint64_t first, unsigned long long* wrong) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  unsigned long long mine = 0;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    mine += data[i] != value_at(first + i) ? 1 : 0;
  if (mine != 0) atomicAdd(wrong, mine);
}

// Returns how many of `count` values are wrong.
inline unsigned long long wrong_in(const std::uint64_t* data, std::size_t count,
                                   std::uint64_t first = 0) {
  unsigned long long* wrong = nullptr;
  REQUIRE(cudaMallocHost(&wrong, sizeof *wrong));
  *wrong = 0;
  count_wrong<<<1024, 256>>>(data, count, first, wrong);
  REQUIRE(cudaDeviceSynchronize());
  const unsigned long long found = *wrong;
  REQUIRE(cudaFreeHost(wrong));
  return found;
}

// Runs the work and waits for the device. Returns the rate in GB/s (10^9 bytes).
template <typename Work>
double gigabytes_per_second(std::size_t bytes, Work work) {
  const auto begun = std::chrono::steady_clock::now();
  work();
  REQUIRE(cudaDeviceSynchronize());
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
  return static_cast<double>(bytes) / 1e9 / taken.count();
}

}  // namespace wide
