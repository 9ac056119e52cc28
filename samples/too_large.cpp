// The bug: all distances between n points are stored as one dense matrix. That worked in every
// test. With the real input the matrix is larger than the device, whatever is free.
//
// Users see cudaErrorMemoryAllocation on an empty device, and look for a leak.
//
//     too_large [points]
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdio>

#include "samples/planned_shortage.hpp"

namespace {

sample::Account account;

[[gnu::noinline]] sample::Request all_distances(std::size_t points) {
  const std::size_t bytes = points * points * sizeof(float);
  void* matrix = nullptr;
  auto request = sample::Request::planned("cudaMalloc", bytes, __func__, __LINE__ + 1);
  request.result = cudaMalloc(&matrix, bytes);
  sample::free_if_served(request, matrix, account);
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  const double total = static_cast<double>(sample::device_memory().total);
  const std::size_t points = sample::argument(
      argc, argv, 1, static_cast<std::size_t>(std::sqrt(1.5 * total / sizeof(float))));

  const std::size_t bytes = points * 3 * sizeof(float);
  void* coordinates = nullptr;
  sample::require(cudaMalloc(&coordinates, bytes), "cudaMalloc");
  account.allocated(bytes);
  std::printf("%zu points\n", points);
  const sample::Request request = all_distances(points);
  if (request.result == cudaSuccess) {
    sample::require(cudaFree(coordinates), "cudaFree");
    account.freed(bytes);
  }
  return sample::conclude(request, account, sample::fact("points", points));
}
