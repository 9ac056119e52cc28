// Calls CUDA through the libraries that wrap it. `runtime`: cudaMalloc and cudaMallocHost.
// `driver`: two requests through dlsym, the larger of which a quota may refuse.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace {

template <class Function>
Function driver_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
}

void call_runtime() {
  void* pointer = nullptr;
  const int allocated = cudaMalloc(&pointer, 1000);
  std::printf("cudaMalloc %d %d, cudaFree %d\n", allocated, pointer != nullptr, cudaFree(pointer));
  const int pinned = cudaMallocHost(&pointer, 1000);
  std::printf("cudaMallocHost %d, cudaFreeHost %d\n", pinned, cudaFreeHost(pointer));
}

void call_driver() {
  cudaFree(nullptr);  // makes a context
  const auto allocate = driver_function<int (*)(unsigned long long*, std::size_t)>("cuMemAlloc_v2");
  unsigned long long small = 0, large = 0;
  const int first = allocate(&small, 1000);
  const int second = allocate(&large, 2 << 20);
  std::printf("a small request %d, a large one %d\n", first, second);
}

}  // namespace

int main(int, char** arguments) {
  std::strcmp(arguments[1], "runtime") == 0 ? call_runtime() : call_driver();
  return 0;
}
