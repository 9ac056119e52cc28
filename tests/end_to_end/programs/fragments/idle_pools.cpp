// idle_pools KEEP MIB [graph|cudaFree]: allocates and frees MIB in stream order, from the default
// pool and from two of its own, of which it destroys one; the pools keep up to KEEP bytes. With
// `graph` it launches nothing but a graph that allocates and frees as much. With `cudaFree` it
// frees by that call, after which the driver goes on counting the memory as used. Its last line
// says what the driver says of what is left.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "tests/end_to_end/programs/require.hpp"

namespace {

std::uint64_t attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
  std::uint64_t value = 0;
  REQUIRE(cudaMemPoolGetAttribute(pool, which, &value));
  return value;
}

void use(cudaMemPool_t pool, std::uint64_t keep, std::size_t bytes, bool by_cuda_free) {
  REQUIRE(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  void* kept = nullptr;
  REQUIRE(cudaMallocFromPoolAsync(&kept, bytes / 8, pool, nullptr));
  void* memory = nullptr;
  REQUIRE(cudaMallocFromPoolAsync(&memory, bytes, pool, nullptr));
  if (by_cuda_free)
    REQUIRE(cudaFree(memory));
  else
    REQUIRE(cudaFreeAsync(memory, nullptr));
  REQUIRE(cudaStreamSynchronize(nullptr));
}

cudaMemPool_t make_pool() {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  cudaMemPool_t pool = nullptr;
  REQUIRE(cudaMemPoolCreate(&pool, &properties));
  return pool;
}

std::uint64_t graph_attribute(cudaGraphMemAttributeType which) {
  std::uint64_t value = 0;
  REQUIRE(cudaDeviceGetGraphMemAttribute(0, which, &value));
  return value;
}

void print(std::uint64_t reserved, std::uint64_t used, std::size_t live) {
  std::printf("{\"reserved_bytes\": %llu, \"used_bytes\": %llu, \"live_bytes\": %zu}\n",
              static_cast<unsigned long long>(reserved), static_cast<unsigned long long>(used),
              live);
}

int launch_a_graph(std::size_t bytes) {
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams parameters{};
  parameters.poolProps.allocType = cudaMemAllocationTypePinned;
  parameters.poolProps.location = {cudaMemLocationTypeDevice, 0};
  parameters.bytesize = bytes;
  cudaGraphNode_t allocates = nullptr, frees = nullptr;
  REQUIRE(cudaGraphAddMemAllocNode(&allocates, graph, nullptr, 0, &parameters));
  REQUIRE(cudaGraphAddMemFreeNode(&frees, graph, &allocates, 1, parameters.dptr));
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  REQUIRE(cudaGraphLaunch(exec, nullptr));
  REQUIRE(cudaStreamSynchronize(nullptr));
  print(graph_attribute(cudaGraphMemAttrReservedMemCurrent),
        graph_attribute(cudaGraphMemAttrUsedMemCurrent), 0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::uint64_t keep = std::strtoull(argv[1], nullptr, 0);
  const std::size_t bytes = std::strtoull(argv[2], nullptr, 0) << 20;
  REQUIRE(cudaFree(nullptr));
  const std::string_view how = argc > 3 ? argv[3] : "";
  if (how == "graph") return launch_a_graph(bytes);
  const bool by_cuda_free = how == "cudaFree";
  cudaMemPool_t default_pool = nullptr;
  REQUIRE(cudaDeviceGetDefaultMemPool(&default_pool, 0));
  const cudaMemPool_t own = make_pool(), destroyed = make_pool();
  use(default_pool, keep, bytes, by_cuda_free);
  use(own, keep, 2 * bytes, by_cuda_free);
  void* memory = nullptr;
  REQUIRE(cudaMallocFromPoolAsync(&memory, bytes, destroyed, nullptr));
  REQUIRE(cudaFreeAsync(memory, nullptr));
  REQUIRE(cudaStreamSynchronize(nullptr));
  REQUIRE(cudaMemPoolDestroy(destroyed));

  std::uint64_t reserved = 0, used = 0;
  for (const cudaMemPool_t pool : {default_pool, own}) {
    reserved += attribute(pool, cudaMemPoolAttrReservedMemCurrent);
    used += attribute(pool, cudaMemPoolAttrUsedMemCurrent);
  }
  print(reserved, used, bytes / 8 + 2 * bytes / 8);
}
