// growing: three places that allocate, each the largest in its way, until the process is killed:
// `holds_most` once, `grows_fastest` in few large pieces, `allocates_most` in many that are freed.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "tests/end_to_end/programs/expected_totals.hpp"

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
