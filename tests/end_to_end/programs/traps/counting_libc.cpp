// Stands in front of libc, or behind the shim, and counts what the hooked path must not call.
#include <dlfcn.h>

#include "tests/counting_heap.hpp"

namespace {

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlvsym(RTLD_NEXT, name, "GLIBC_2.2.5"));
}

}  // namespace

extern "C" {

long counted_calls() { return calls; }

int dladdr(const void* address, Dl_info* info) noexcept {
  ++calls;
  return next<int (*)(const void*, Dl_info*)>("dladdr")(address, info);
}
void* dlsym(void* handle, const char* name) noexcept {
  ++calls;
  static const auto real = next<void* (*)(void*, const char*)>("dlsym");
  void* const found = real(handle, name);
  return found;
}

}  // extern "C"
