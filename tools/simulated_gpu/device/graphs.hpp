// Graphs, the memory that they hold on the device, and captures of streams into graphs.
#pragma once

#include <thread>

#include "tools/simulated_gpu/device/simulator.hpp"

namespace cuwarden::simulated_gpu {

enum class NodeKind { empty, kernel, copy, fill, host, allocate, release, child, event, other };

struct Graph;

struct Node {
  Graph* graph = nullptr;
  NodeKind kind = NodeKind::empty;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::vector<Node*> dependencies;
  bool destroyed = false;
  bool enabled = true;
  CUDA_MEM_ALLOC_NODE_PARAMS allocation{};  // Only for kind `allocate`.
  CUdeviceptr freed = 0;                    // Only for kind `release`: the address that is freed.
  // Only for kinds `copy`, `fill` and `host`: called under the lock, so it must be short.
  std::function<void(Stream&)> work;
  Graph* child = nullptr;
  CUDA_KERNEL_NODE_PARAMS kernel{};
  CUDA_HOST_NODE_PARAMS host{};
  CUevent event = nullptr;
};

struct Graph {
  std::vector<Node*> nodes;
  bool destroyed = false;
};

struct GraphExec {
  Context* context = nullptr;
  // Copies of the graph's nodes, in an order that respects the dependencies.
  std::vector<Node> nodes;
  unsigned long long flags = 0;
};

// A capture: its streams record calls instead of working.
struct Capture {
  Graph* graph = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  Stream* origin = nullptr;
  unsigned long long id = 0;
  bool invalidated = false;
  bool owns_graph = true;
  // Nodes that the next node of each stream depends on.
  std::map<Stream*, std::vector<Node*>> heads;
};

Handles<Graph>& graphs();
Handles<Node>& nodes();
Handles<GraphExec>& graph_execs();

// Adds a node without dependencies to the graph.
Node* add_node(Graph& graph, NodeKind kind, CUgraphNodeType type);
// Adds a node by the program's handles. Returns an error if a handle is not valid.
CUresult add_node(Node*& node, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                  std::size_t count, NodeKind kind, CUgraphNodeType type);
// Adds a node that depends on everything that the stream has captured so far.
Node* capture_node(Stream& stream, NodeKind kind, CUgraphNodeType type);
// Reserves addresses for an allocation node, although memory comes only with a launch: those of
// memory that the graph has freed before the node, or new ones.
CUresult reserve_graph_memory(Node& node);
// Frees memory that a launched graph left to the program, as cuMemFree does.
CUresult release_graph_memory(Simulator& sim, Range& range);

}  // namespace cuwarden::simulated_gpu
