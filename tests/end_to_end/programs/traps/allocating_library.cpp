// Allocates in a function of its own, which a report is to name.
#include <cuda_runtime_api.h>

namespace {
[[gnu::noinline]] int allocate_deeper(void** memory, unsigned long bytes) {
  const int result = cudaMalloc(memory, bytes);
  return result + (*memory == nullptr ? 1 : 0);  // no tail call
}
}  // namespace

extern "C" [[gnu::visibility("default")]] int allocate_in_library(unsigned long bytes) {
  void* memory = nullptr;
  return allocate_deeper(&memory, bytes);
}
