// The library of two_libraries. Blocks that are released are kept for the next request, because
// asking the device is slow. The library empties its cache when its own request fails; it does not
// see requests of others.
#include "samples/libraries/tensor_cache.hpp"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

#define CACHE_EXPORT [[gnu::visibility("default")]]

namespace {

std::mutex mutex;
std::map<void*, std::size_t> live;
std::multimap<std::size_t, void*> idle;

void empty() {
  for (const auto& [bytes, block] : idle) cudaFree(block);
  idle.clear();
}

[[gnu::noinline]] void* new_block(std::size_t bytes) {
  void* block = nullptr;
  if (cudaMalloc(&block, bytes) == cudaSuccess) return block;
  empty();
  return cudaMalloc(&block, bytes) == cudaSuccess ? block : nullptr;
}

}  // namespace

extern "C" {

CACHE_EXPORT void* tensor_cache_allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex);
  void* block = nullptr;
  const auto found = idle.lower_bound(bytes);
  if (found != idle.end() && found->first <= 2 * bytes) {
    bytes = found->first;
    block = found->second;
    idle.erase(found);
  } else {
    block = new_block(bytes);
  }
  if (block != nullptr) live.emplace(block, bytes);
  return block;
}

CACHE_EXPORT void tensor_cache_release(void* tensor) {
  const std::lock_guard lock(mutex);
  const auto found = live.find(tensor);
  if (found == live.end()) return;
  idle.emplace(found->second, found->first);
  live.erase(found);
}

CACHE_EXPORT std::size_t tensor_cache_idle_bytes() {
  const std::lock_guard lock(mutex);
  std::size_t sum = 0;
  for (const auto& [bytes, block] : idle) sum += bytes;
  return sum;
}

CACHE_EXPORT void tensor_cache_empty() {
  const std::lock_guard lock(mutex);
  empty();
}

}  // extern "C"
