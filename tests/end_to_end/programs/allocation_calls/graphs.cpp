// Memory nodes of graphs: nothing is allocated until a launch. Memory that the graph does not free
// is live until a call or another graph frees it.
#include "tests/end_to_end/programs/allocation_calls/calls.hpp"
#include "tests/end_to_end/programs/allocation_calls/memory_nodes.hpp"

namespace allocation_calls {

namespace {

using memory_nodes::bytes;
using memory_nodes::on_device;

}  // namespace

void graph_never_launched(Account&) { memory_nodes::never_launched(); }

void graph_launched(Account& account) { memory_nodes::launched(account); }

void graph_freed(Account& account) { memory_nodes::freed_by_the_graph(account); }

// A stream capture turns the stream-ordered calls into nodes: the calls allocate nothing.
void captured(Account& account) {
  const auto made = memory_nodes::captured_graph([](cudaStream_t, void*) {});
  REQUIRE(cudaGraphLaunch(made.exec, made.stream));
  account.allocated("graph", bytes);
  REQUIRE(cudaStreamSynchronize(made.stream));
  REQUIRE(cudaFree(made.address));
  account.freed("graph", bytes);
}

// As in NVIDIA's sample graphMemoryNodes: one node takes the address that another one has freed,
// and keeps it, until another graph or a call outside of the graphs frees it.
void graph_address_reused(Account& account) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraph_t freeing_graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphExec_t freeing = nullptr;
  void* input = nullptr;
  void* square = nullptr;
  void* output = nullptr;
  REQUIRE(cudaStreamCreate(&stream));
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  REQUIRE(cudaMallocAsync(&input, bytes, stream));
  REQUIRE(cudaMallocAsync(&square, 2 * bytes, stream));
  REQUIRE(cudaFreeAsync(input, stream));
  const int line = __LINE__ + 1;
  REQUIRE(cudaMallocAsync(&output, bytes - 1000, stream));
  REQUIRE(cudaFreeAsync(square, stream));
  REQUIRE(cudaStreamEndCapture(stream, &graph));
  if (output != input) std::printf("the addresses differ\n");
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0));
  REQUIRE(cudaGraphCreate(&freeing_graph, 0));
  REQUIRE(cudaGraphAddMemFreeNode(&node, freeing_graph, nullptr, 0, output));
  REQUIRE(cudaGraphInstantiate(&freeing, freeing_graph, 0));
  for (const int way : {0, 1, 2, 3}) {
    REQUIRE(cudaGraphLaunch(exec, stream));
    account.allocated("graph", bytes);
    account.allocated("graph", 2 * bytes);
    account.freed("graph", bytes);
    account.allocated("graph", bytes - 1000);
    account.freed("graph", 2 * bytes);
    if (way == 0) REQUIRE(cudaGraphLaunch(freeing, stream));
    if (way == 1) REQUIRE(cudaFreeAsync(output, stream));
    REQUIRE(cudaStreamSynchronize(stream));
    if (way == 2) REQUIRE(cudaFree(output));
    if (way < 3) account.freed("graph", bytes - 1000);
  }
  account.leaked({"cudaMallocAsync", "graph", "graph_address_reused", line, 1, bytes - 1000});
}

// Each launch frees the memory that the launch before has left.
void graph_freed_by_the_next_launch(Account& account) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t nodes[3] = {};
  cudaGraphExec_t exec = nullptr;
  cudaMemAllocNodeParams params = on_device();
  REQUIRE(cudaGraphCreate(&graph, 0));
  REQUIRE(cudaGraphAddMemAllocNode(&nodes[0], graph, nullptr, 0, &params));
  void* const first = params.dptr;
  REQUIRE(cudaGraphAddMemFreeNode(&nodes[1], graph, &nodes[0], 1, first));
  const int line = __LINE__ + 1;
  REQUIRE(cudaGraphAddMemAllocNode(&nodes[2], graph, &nodes[1], 1, &params));
  if (params.dptr != first) std::printf("the addresses differ\n");
  REQUIRE(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  for (int i = 0; i < 3; ++i) {
    if (i > 0) account.freed("graph", bytes);
    REQUIRE(cudaGraphLaunch(exec, nullptr));
    account.allocated("graph", bytes);
    account.freed("graph", bytes);
    account.allocated("graph", bytes);
  }
  REQUIRE(cudaDeviceSynchronize());
  account.leaked(
      {"cudaGraphAddMemAllocNode", "graph", "graph_freed_by_the_next_launch", line, 1, bytes});
}

}  // namespace allocation_calls
