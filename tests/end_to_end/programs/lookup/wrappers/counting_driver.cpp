// A foreign library that counts the driver's allocating calls: it asks the loader for the next
// function of the same name.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

namespace {

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int cuMemAlloc_v2(unsigned long long* pointer, std::size_t bytes) {
  static const auto allocate = next<int (*)(unsigned long long*, std::size_t)>("cuMemAlloc_v2");
  std::puts("counted an allocation");
  return allocate != nullptr ? allocate(pointer, bytes) : -1;
}

extern "C" int cuMemFree_v2(unsigned long long pointer) {
  static const auto free = next<int (*)(unsigned long long)>("cuMemFree_v2");
  std::puts("counted a free");
  return free != nullptr ? free(pointer) : -1;
}
