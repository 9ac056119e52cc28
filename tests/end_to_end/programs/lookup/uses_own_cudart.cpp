// A library that uses the CUDA runtime it was linked with; built twice, once for each runtime.
#include <cstddef>

extern "C" int cudaMalloc(void**, std::size_t);
extern "C" int cudaFree(void*);
extern "C" int cudaGetLastError();

#define EXPORTED extern "C" [[gnu::visibility("default")]] int

EXPORTED allocate(std::size_t bytes) {
  void* memory = nullptr;
  return cudaMalloc(&memory, bytes);
}
EXPORTED allocate_and_free(std::size_t bytes) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) != 0) return -1;
  return cudaFree(memory);
}
EXPORTED last_error() { return cudaGetLastError(); }
