// A loop of 20 steps, marked with cuwarden.h: each keeps 2 MiB.
#include <cuda_runtime_api.h>
#include <cuwarden.h>

#include "tests/end_to_end/programs/let_time_pass.hpp"

namespace {

[[gnu::noinline]] bool keep() {
  void* kept = nullptr;
  return cudaMalloc(&kept, 2 << 20) == cudaSuccess;
}

}  // namespace

int main() {
  for (int step = 0; step < 20; ++step) {
    cuwarden_step();
    if (!keep()) return 1;
    let_time_pass(20);
  }
  return 0;
}
