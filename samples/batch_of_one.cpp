// The bug: the batch is one small image, so that it cannot be made smaller. Each step needs
// intermediate buffers of a quarter of the device, and keeps its features for a plot that is made
// at the end. The list of features grows until a step finds no room for its intermediate buffers.
//
// Users see an out-of-memory at step N with the smallest possible batch. It comes at a line that
// has worked N times and frees its memory; the line that grows is another one.
//
//     batch_of_one [most steps]
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "samples/planned_shortage.hpp"

namespace {

sample::Account account;
std::vector<void*> history;
int growing_line = 0;

struct Sizes {
  std::size_t image = std::size_t{224} * 224 * 3 * sizeof(float);
  std::size_t intermediate = 0;
  std::size_t features = 0;
};

void* take(void* pointer, std::size_t bytes) {
  account.allocated(bytes);
  return pointer;
}

[[gnu::noinline]] void keep_features(std::size_t bytes) {
  void* features = nullptr;
  growing_line = __LINE__ + 1;
  sample::require(cudaMalloc(&features, bytes), "cudaMalloc");
  history.push_back(take(features, bytes));
}

[[gnu::noinline]] sample::Request forward(const Sizes& sizes) {
  void* expanded = nullptr;
  auto request = sample::Request::planned("cudaMalloc", sizes.intermediate, __func__, __LINE__ + 1);
  request.result = cudaMalloc(&expanded, sizes.intermediate);
  if (request.result != cudaSuccess) return request;
  take(expanded, sizes.intermediate);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // Stands for the step's computation.
  sample::require(cudaFree(expanded), "cudaFree");
  account.freed(sizes.intermediate);
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t most_steps = sample::argument(argc, argv, 1, 1000);

  Sizes sizes;
  void* image = nullptr;
  sample::require(cudaMalloc(&image, sizes.image), "cudaMalloc");
  take(image, sizes.image);
  const std::size_t free = sample::device_memory().free;
  sizes.intermediate = free / 4 / sample::kDevicePage * sample::kDevicePage;
  sizes.features = free / 64 / sample::kDevicePage * sample::kDevicePage;

  sample::Request request;
  std::size_t step = 0;
  for (; step < most_steps; ++step) {
    keep_features(sizes.features);
    request = forward(sizes);
    if (request.result != cudaSuccess) break;
  }
  std::printf("%zu steps\n", step);
  return sample::conclude(request, account,
                          sample::fact("steps", step) + sample::fact("batch_bytes", sizes.image) +
                              sample::fact("growing_function", "keep_features") +
                              sample::fact("growing_line", static_cast<std::size_t>(growing_line)) +
                              sample::fact("bytes_per_step", sizes.features));
}
