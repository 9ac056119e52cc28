// A cache that is never freed, and a bug beside it. The cache still points to all of its buffers
// when the program ends. The bug overwrites the only pointer to a buffer by one from the cache.
//
// cuwarden lists both as not freed. It calls the second `lost`, because no pointer to it is left,
// and the first `reachable`.
//
//     reachable_cache [keys] [bytes a buffer]
#include <cuda_runtime_api.h>

#include <cstdio>
#include <map>

#include "samples/planted_leaks.hpp"

namespace {

int caching_line = 0, losing_line = 0;

// The cache lives until the program ends, and frees nothing.
std::map<std::size_t, void*>& cache() {
  static std::map<std::size_t, void*> buffers;
  return buffers;
}

[[gnu::noinline]] void* buffer_for(std::size_t key, std::size_t bytes) {
  void*& buffer = cache()[key];
  caching_line = __LINE__ + 1;
  sample::require(cudaMalloc(&buffer, bytes), "cudaMalloc");
  return buffer;
}

[[gnu::noinline]] void process(std::size_t key, std::size_t bytes) {
  void* scratch = nullptr;
  losing_line = __LINE__ + 1;
  sample::require(cudaMalloc(&scratch, bytes), "cudaMalloc");
  scratch = buffer_for(key, bytes);  // Leaks what `scratch` pointed to.
  sample::require(cudaMemset(scratch, 0, bytes), "cudaMemset");
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t keys = sample::argument(argc, argv, 1, 8);
  const std::size_t bytes = sample::argument(argc, argv, 2, std::size_t{1} << 20);
  for (std::size_t key = 0; key < keys; ++key) process(key, bytes);
  std::printf("%zu buffers are cached\n", cache().size());
  sample::print_leaks({{"cudaMalloc", "device", keys, keys * bytes, "buffer_for", caching_line},
                       {"cudaMalloc", "device", keys, keys * bytes, "process", losing_line}});
}
