// Memory nodes of graphs: nothing is allocated until a launch, and what the graph does not free is
// live until somebody does.
#include "tests/end_to_end/programs/families/families.hpp"

namespace families {

namespace {

constexpr std::size_t bytes = std::size_t{4} << 20;

cudaMemAllocNodeParams on_device() {
  cudaMemAllocNodeParams params{};
  params.poolProps.allocType = cudaMemAllocationTypePinned;
  params.poolProps.location.type = cudaMemLocationTypeDevice;
  params.poolProps.location.id = 0;
  params.bytesize = bytes;
  return params;
}

}  // namespace

void graph_never_launched(Account&) {
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

void graph_launched(Account& account) {
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
}

void graph_freed(Account& account) {
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

// A stream capture turns the stream-ordered calls into nodes: the calls allocate nothing.
void captured(Account& account) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  void* memory = nullptr;
  REQUIRE(cudaStreamCreate(&stream));
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  REQUIRE(cudaMallocAsync(&memory, bytes, stream));
  REQUIRE(cudaStreamEndCapture(stream, &graph));
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0));
  REQUIRE(cudaGraphLaunch(exec, stream));
  account.allocated("graph", bytes);
  REQUIRE(cudaStreamSynchronize(stream));
  REQUIRE(cudaFree(memory));
  account.freed("graph", bytes);
}

}  // namespace families
