// deepbound PATH: opens a library with RTLD_DEEPBIND and has it allocate.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>

int main(int, char** argv) {
  if (cudaFree(nullptr) != cudaSuccess) return 3;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
  if (library == nullptr) return 3;
  const auto allocate =
      reinterpret_cast<int (*)(unsigned long)>(dlsym(library, "deepbound_allocate"));
  if (allocate == nullptr) return 3;
  std::printf("result %d\n", allocate(1UL << 20));
}
