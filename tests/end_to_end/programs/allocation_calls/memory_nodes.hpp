// Graphs that allocate memory by a node: one is never launched, one is launched and keeps its
// memory, one frees its memory by another node.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "tests/end_to_end/programs/expected_totals.hpp"
#include "tests/end_to_end/programs/require.hpp"

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

// A graph with one node, which allocates, and the executable graph made of it. Both live until
// destroyed.
struct AllocatingGraph {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  void* address = nullptr;  // address that the node allocates
};

// Makes a graph with one node, which allocates `bytes`. `flags`: flags of cudaGraphInstantiate().
inline AllocatingGraph allocating_graph(unsigned long long flags = 0) {
  AllocatingGraph made;
  cudaGraphNode_t node = nullptr;
  cudaMemAllocNodeParams params = on_device();
  REQUIRE(cudaGraphCreate(&made.graph, 0));
  REQUIRE(cudaGraphAddMemAllocNode(&node, made.graph, nullptr, 0, &params));
  REQUIRE(cudaGraphInstantiate(&made.exec, made.graph, flags));
  made.address = params.dptr;
  return made;
}

// An executable graph made by a stream capture, and the captured stream. Both live until destroyed.
struct CapturedGraph {
  cudaStream_t stream = nullptr;
  cudaGraphExec_t exec = nullptr;
  void* address = nullptr;  // address of the memory that the captured call allocates
};

// Captures an allocation of `bytes` in a new stream, and what work(stream, memory) calls then. The
// capture turns these calls into nodes, so they allocate nothing. `memory`: address of the memory.
template <class Work>
CapturedGraph captured_graph(const Work& work) {
  CapturedGraph made;
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamCreate(&made.stream));
  REQUIRE(cudaStreamBeginCapture(made.stream, cudaStreamCaptureModeThreadLocal));
  REQUIRE(cudaMallocAsync(&made.address, bytes, made.stream));
  work(made.stream, made.address);
  REQUIRE(cudaStreamEndCapture(made.stream, &graph));
  REQUIRE(cudaGraphInstantiate(&made.exec, graph, 0));
  return made;
}

// Makes a graph with a node that allocates, and its executable graph. Launches neither, and
// destroys both: nothing was allocated.
inline void never_launched() {
  const AllocatingGraph made = allocating_graph();
  REQUIRE(cudaGraphExecDestroy(made.exec));
  REQUIRE(cudaGraphDestroy(made.graph));
}

// Launches a graph with a node that allocates, and waits for it. The memory stays live. Returns its
// address. `Account` counts the allocation.
inline void* launched(expected::Account& account) {
  const AllocatingGraph made = allocating_graph();
  REQUIRE(cudaGraphLaunch(made.exec, nullptr));
  account.allocated("graph", bytes);
  REQUIRE(cudaDeviceSynchronize());
  return made.address;
}

// Launches a graph three times. One of its nodes allocates, and another one frees. Waits for the
// graph and destroys it. `Account` counts the allocations, of which none stays live.
inline void freed_by_the_graph(expected::Account& account) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t allocate = nullptr;
  cudaGraphNode_t free_node = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaMemAllocNodeParams params = on_device();
  REQUIRE(cudaGraphCreate(&graph, 0));
  REQUIRE(cudaGraphAddMemAllocNode(&allocate, graph, nullptr, 0, &params));
  REQUIRE(cudaGraphAddMemFreeNode(&free_node, graph, &allocate, 1, params.dptr));
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) {
    REQUIRE(cudaGraphLaunch(exec, nullptr));
    account.allocated("graph", bytes);
    account.freed("graph", bytes);
  }
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaGraphExecDestroy(exec));
  REQUIRE(cudaGraphDestroy(graph));
}

}  // namespace memory_nodes
