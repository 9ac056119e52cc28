// A quota, as schedulers preload one: it wraps dlsym to hand out its own cuMemAlloc_v2, which
// refuses what is above a megabyte, and finds the real one through the real dlsym.
#include <dlfcn.h>

#include <cstddef>
#include <cstring>

extern "C" int cuMemAlloc_v2(unsigned long long* pointer, std::size_t bytes);

namespace {

using Lookup = void* (*)(void*, const char*);
Lookup next_lookup() {
  static const auto next = reinterpret_cast<Lookup>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
  return next;
}

}  // namespace

extern "C" void* dlsym(void* handle, const char* name) noexcept {
  if (std::strcmp(name, "cuMemAlloc_v2") == 0) return reinterpret_cast<void*>(cuMemAlloc_v2);
  return next_lookup()(handle, name);
}

extern "C" int cuMemAlloc_v2(unsigned long long* pointer, std::size_t bytes) {
  constexpr std::size_t quota = 1 << 20;
  constexpr int out_of_memory = 2;
  if (bytes > quota) return out_of_memory;
  using Allocate = int (*)(unsigned long long*, std::size_t);
  static const auto next =
      reinterpret_cast<Allocate>(next_lookup()(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2"));
  return next(pointer, bytes);
}
