// through_header: allocates by a template of the runtime's own header, leaks, and waits for its
// standard input to end.
#include <cuda_runtime.h>

#include <cstdio>

namespace {

[[gnu::noinline]] bool through_header() {
  float* memory = nullptr;
  return cudaMalloc(&memory, 1 << 20) == cudaSuccess;  // cudaMalloc<float>
}

}  // namespace

int main() {
  if (!through_header()) return 1;
  std::puts("ready");
  std::fflush(stdout);
  return std::getchar() == EOF ? 0 : 1;
}
