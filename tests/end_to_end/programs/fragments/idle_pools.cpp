// idle_pools KEEP MIB: allocates and frees MIB in stream order, from the default pool and from two
// of its own, of which it destroys one; the pools keep up to KEEP bytes. Its last line says what
// the driver says of the pools that are left.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

namespace {

void require(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(result));
  std::exit(1);
}

std::uint64_t attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
  std::uint64_t value = 0;
  require(cudaMemPoolGetAttribute(pool, which, &value), "cudaMemPoolGetAttribute");
  return value;
}

void use(cudaMemPool_t pool, std::uint64_t keep, std::size_t bytes) {
  require(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
          "cudaMemPoolSetAttribute");
  void* kept = nullptr;
  require(cudaMallocFromPoolAsync(&kept, bytes / 8, pool, nullptr), "cudaMallocFromPoolAsync");
  void* memory = nullptr;
  require(cudaMallocFromPoolAsync(&memory, bytes, pool, nullptr), "cudaMallocFromPoolAsync");
  require(cudaFreeAsync(memory, nullptr), "cudaFreeAsync");
  require(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

cudaMemPool_t make_pool() {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  cudaMemPool_t pool = nullptr;
  require(cudaMemPoolCreate(&pool, &properties), "cudaMemPoolCreate");
  return pool;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::uint64_t keep = std::strtoull(argv[1], nullptr, 0);
  const std::size_t bytes = std::strtoull(argv[2], nullptr, 0) << 20;
  require(cudaFree(nullptr), "cudaFree");
  cudaMemPool_t default_pool = nullptr;
  require(cudaDeviceGetDefaultMemPool(&default_pool, 0), "cudaDeviceGetDefaultMemPool");
  const cudaMemPool_t own = make_pool(), destroyed = make_pool();
  use(default_pool, keep, bytes);
  use(own, keep, 2 * bytes);
  void* memory = nullptr;
  require(cudaMallocFromPoolAsync(&memory, bytes, destroyed, nullptr), "cudaMallocFromPoolAsync");
  require(cudaFreeAsync(memory, nullptr), "cudaFreeAsync");
  require(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  require(cudaMemPoolDestroy(destroyed), "cudaMemPoolDestroy");

  std::uint64_t reserved = 0, used = 0;
  for (const cudaMemPool_t pool : {default_pool, own}) {
    reserved += attribute(pool, cudaMemPoolAttrReservedMemCurrent);
    used += attribute(pool, cudaMemPoolAttrUsedMemCurrent);
  }
  std::printf("{\"reserved_bytes\": %llu, \"used_bytes\": %llu, \"live_bytes\": %zu}\n",
              static_cast<unsigned long long>(reserved), static_cast<unsigned long long>(used),
              bytes / 8 + 2 * bytes / 8);
}
