// Functions of the heap that count their calls, in front of libc's. For one source of a program or
// library, which may count further functions in `calls`.
#pragma once

#include <atomic>
#include <cstddef>

namespace {
// Number of calls of malloc, calloc, realloc and free (but for free of null) since the program
// began, and of further functions that the including source counts.
std::atomic<long> calls{0};
}  // namespace

extern "C" {

// libc's own malloc, which the counting malloc calls.
void* __libc_malloc(std::size_t);
// libc's own calloc, which the counting calloc calls.
void* __libc_calloc(std::size_t, std::size_t);
// libc's own realloc, which the counting realloc calls.
void* __libc_realloc(void*, std::size_t);
// libc's own free, which the counting free calls.
void __libc_free(void*);

// Counts the call, and returns memory of libc's malloc.
void* malloc(std::size_t bytes) noexcept {
  ++calls;
  return __libc_malloc(bytes);
}
// Counts the call, and returns memory of libc's calloc.
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  ++calls;
  return __libc_calloc(count, bytes);
}
// Counts the call, and returns memory of libc's realloc.
void* realloc(void* memory, std::size_t bytes) noexcept {
  ++calls;
  return __libc_realloc(memory, bytes);
}
// Counts the call unless `memory` is null, and calls libc's free.
void free(void* memory) noexcept {
  if (memory != nullptr) ++calls;
  __libc_free(memory);
}

}  // extern "C"
