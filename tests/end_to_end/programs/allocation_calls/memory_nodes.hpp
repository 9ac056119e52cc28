// Graphs that allocate memory by a node: one is never launched, one is launched and keeps its
// memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "tests/end_to_end/programs/expected_totals.hpp"

namespace memory_nodes {

constexpr std::size_t bytes = std::size_t{4} << 20;  // size of each node's allocation

// Returns the parameters of a node that allocates `bytes` on device 0.
inline cudaMemAllocNodeParams on_device() {
  cudaMemAllocNodeParams params{};
  params.poolProps.allocType = cudaMemAllocationTypePinned;
  params.poolProps.location.type = cudaMemLocationTypeDevice;
  params.poolProps.location.id = 0;
  params.bytesize = bytes;
  return params;
}

// Makes a graph with a node that allocates, and its executable graph. Launches neither, and
// destroys both: nothing was allocated.
inline void never_launched() {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaMemAllocNodeParams params = on_device();
  REQUIRE(cudaGraphCreate(&graph, 0));
  REQUIRE(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0));
  REQUIRE(cudaGraphExecDestroy(exec));
  REQUIRE(cudaGraphDestroy(graph));
}

// Launches a graph with a node that allocates, and waits for it. The memory stays live. Returns its
// address. `Account` counts the allocation.
inline void* launched(expected::Account& account) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaMemAllocNodeParams params = on_device();
  REQUIRE(cudaGraphCreate(&graph, 0));
  REQUIRE(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0));
  REQUIRE(cudaGraphLaunch(exec, nullptr));
  account.allocated("graph", bytes);
  REQUIRE(cudaDeviceSynchronize());
  return params.dptr;
}

}  // namespace memory_nodes
