// growing: three functions allocate until the process is killed, and each leads in one way:
// `holds_most` in live bytes, `grows_fastest` in growth, `allocates_most` in the number of
// allocations.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "tests/end_to_end/programs/require.hpp"

namespace {

[[gnu::noinline]] void* holds_most() {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, std::size_t{4} << 30));
  return memory;
}

[[gnu::noinline]] void* grows_fastest() {
  void* memory = nullptr;
  REQUIRE(cudaMallocHost(&memory, 64 << 10));
  return memory;
}

[[gnu::noinline]] void* allocates_most() {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 4096));
  return memory;
}

}  // namespace

int main() {
  holds_most();
  allocates_most();
  std::puts("ready");
  std::fflush(stdout);
  for (;;) {
    grows_fastest();
    for (int i = 0; i < 10; ++i) REQUIRE(cudaFree(allocates_most()));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}
