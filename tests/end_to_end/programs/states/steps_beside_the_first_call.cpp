// A thread that marks one step after the other while the main thread makes the program's first CUDA
// call. Prints the number of steps as JSON.
#include <cuda_runtime_api.h>
#include <cuwarden.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "tests/comes_about.hpp"

int main() {
  std::atomic<int> steps{0};
  std::atomic<bool> is_done{false};
  std::thread marks([&] {
    while (!is_done) {
      cuwarden_step();
      ++steps;
    }
  });
  cuwarden::wait_until("a step is marked", [&] { return steps != 0; });
  void* kept = nullptr;
  const cudaError_t result = cudaMalloc(&kept, 1 << 20);
  is_done = true;
  marks.join();
  std::printf("{\"steps\": %d}\n", steps.load());
  return result == cudaSuccess ? 0 : 1;
}
