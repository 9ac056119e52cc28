// A foreign library that wraps the runtime: it defines some functions and asks the loader for the
// next ones, as tools that count or pool allocations do.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

extern "C" int cudaMalloc(void** pointer, std::size_t bytes) {
  using Malloc = int (*)(void**, std::size_t);
  static const auto next = reinterpret_cast<Malloc>(dlsym(RTLD_NEXT, "cudaMalloc"));
  std::puts("the wrapper was called");
  return next != nullptr ? next(pointer, bytes) : -1;
}

// Two functions of a pair: one calls the other by its name, as the loader binds it.
extern "C" [[gnu::noinline]] int cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  using Allocate = int (*)(void**, std::size_t, unsigned);
  static const auto next = reinterpret_cast<Allocate>(dlsym(RTLD_NEXT, "cudaHostAlloc"));
  std::puts("the second wrapper was called");
  return next != nullptr ? next(pointer, bytes, flags) : -1;
}
extern "C" int cudaMallocHost(void** pointer, std::size_t bytes) {
  const int result = cudaHostAlloc(pointer, bytes, 0);
  std::puts("the first wrapper was called");
  return result;
}
