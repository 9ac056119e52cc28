// Prints how often cudaMalloc and cudaFree call the libc that counts, in 1000 pairs, and how often
// as many pairs of the driver's functions call it. Some pairs before are not counted.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "tests/end_to_end/programs/require.hpp"

namespace {

void pairs(int count) {
  for (int i = 0; i < count; ++i) {
    void* memory = nullptr;
    CUdeviceptr address = 0;
    REQUIRE(cudaMalloc(&memory, 1000));
    REQUIRE(cuMemAlloc(&address, 1000));
    REQUIRE(cuMemFree(address));
    REQUIRE(cudaFree(memory));
  }
}

}  // namespace

int main() {
  const auto counted = reinterpret_cast<long (*)()>(dlsym(RTLD_DEFAULT, "counted_calls"));
  if (counted == nullptr) return 3;
  const long at_start = counted();
  std::free(std::malloc(1000));
  if (counted() != at_start + 2) return 4;  // the program's own calls are counted
  pairs(100);
  const long before = counted();
  pairs(1000);
  const long after = counted();
  std::printf("%ld\n", after - before);
}
