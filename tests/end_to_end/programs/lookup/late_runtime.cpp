// Calls the driver first, and the runtime after it was opened into the global scope.
#include <cuda.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

int main() {
  std::printf("cuInit: %d\n", cuInit(0));
  void* const before = dlsym(RTLD_DEFAULT, "cudaMalloc");
  std::printf("found before: %d\n", before != nullptr);
  if (dlopen("libcudart.so.13", RTLD_NOW | RTLD_GLOBAL) == nullptr) return 2;
  const auto allocate =
      reinterpret_cast<int (*)(void**, std::size_t)>(dlsym(RTLD_DEFAULT, "cudaMalloc"));
  void* block = nullptr;
  std::printf("cudaMalloc: %d\n", allocate == nullptr ? -1 : allocate(&block, 1000));
  return 0;
}
