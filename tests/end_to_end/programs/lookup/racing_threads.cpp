// Starts many threads that make the process's first CUDA calls at the same moment. Half of them
// find the function by dlsym.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "tests/comes_about.hpp"

int main() {
  constexpr int threads = 8;
  constexpr std::size_t bytes = 65536;
  std::atomic<int> waiting{threads};
  std::atomic<int> failed{0};
  std::vector<std::thread> racing;
  for (int i = 0; i < threads; ++i) {
    racing.emplace_back([&, i] {
      using Allocate = cudaError_t (*)(void**, std::size_t);
      --waiting;
      cuwarden::wait_awake_until("all threads are there", [&] { return waiting == 0; });
      Allocate allocate = [](void** p, std::size_t n) { return cudaMalloc(p, n); };
      if (i % 2 == 1) allocate = reinterpret_cast<Allocate>(dlsym(RTLD_DEFAULT, "cudaMalloc"));
      void* memory = nullptr;
      if (allocate(&memory, bytes) != cudaSuccess) ++failed;
    });
  }
  for (std::thread& thread : racing) thread.join();
  std::printf("{\"failed\":%d,\"count\":%d,\"bytes\":%zu}\n", failed.load(), threads,
              threads * bytes);
}
