// Holds 65 MiB for a moment and ends with one.
#include <cuda_runtime_api.h>

#include "tests/end_to_end/programs/require.hpp"

namespace {

constexpr std::size_t mib = 1 << 20;

[[gnu::noinline]] void* hold_most() {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 16 * mib));
  return memory;
}
[[gnu::noinline]] void* hold_less() {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 16 * mib));
  return memory;
}

}  // namespace

int main(int argc, char**) {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, mib));
  void* held[] = {hold_less(), nullptr, nullptr, nullptr};
  const int held_in_all = argc + 3;  // the compiler is to leave the loop a loop
  for (int i = 1; i < held_in_all; ++i) held[i] = hold_most();
  for (void* gone : held) REQUIRE(cudaFree(gone));
  return 0;
}
