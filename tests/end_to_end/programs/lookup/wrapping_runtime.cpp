// A library of somebody else's that stands in front of the runtime: it defines cudaMalloc alone and
// asks the loader for the next one, as tools that count or pool allocations do.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

extern "C" int cudaMalloc(void** pointer, std::size_t bytes) {
  using Malloc = int (*)(void**, std::size_t);
  static const auto next = reinterpret_cast<Malloc>(dlsym(RTLD_NEXT, "cudaMalloc"));
  std::puts("the wrapper was called");
  return next != nullptr ? next(pointer, bytes) : -1;
}
