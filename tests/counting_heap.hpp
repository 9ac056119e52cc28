// Functions of the heap that count their calls, in front of libc's. For one source of a program or
// library, which may count further functions in `calls`.
#pragma once

#include <atomic>
#include <cstddef>

namespace {
std::atomic<long> calls{0};
}

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void __libc_free(void*);

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

}  // extern "C"
