// Stands in front of libc, or behind the shim, and counts what the hooked path must not call.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void __libc_free(void*);
}

namespace {

std::atomic<long> calls{0};

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlvsym(RTLD_NEXT, name, "GLIBC_2.2.5"));
}

}  // namespace

extern "C" {

long counted_calls() { return calls; }

void* malloc(std::size_t bytes) noexcept {
  ++calls;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  ++calls;
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) noexcept {
  ++calls;
  return __libc_realloc(memory, bytes);
}
void free(void* memory) noexcept {
  if (memory != nullptr) ++calls;
  __libc_free(memory);
}
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
