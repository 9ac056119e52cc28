// Graphs, what they hold on the device, and captures of streams into them.
#pragma once

#include <thread>

#include "tools/simulated_gpu/simulator.hpp"

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
  CUDA_MEM_ALLOC_NODE_PARAMS allocation{};  // allocate
  CUdeviceptr freed = 0;                    // release
  std::function<void(Stream&)> work;        // copy, fill, host: done under the lock, briefly
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
  std::vector<Node> nodes;  // copies, in an order that respects the dependencies
  unsigned long long flags = 0;
};

// A stream that records instead of working.
struct Capture {
  Graph* graph = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  Stream* origin = nullptr;
  unsigned long long id = 0;
  bool invalidated = false;
  bool owns_graph = true;
  std::map<Stream*, std::vector<Node*>> heads;  // what the next node of each stream depends on
};

Handles<Graph>& graphs();
Handles<Node>& nodes();
Handles<GraphExec>& graph_execs();

Node* add_node(Graph& graph, NodeKind kind, CUgraphNodeType type);
// The same by the program's handles, where they are good.
CUresult add_node(Node*& node, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                  std::size_t count, NodeKind kind, CUgraphNodeType type);
// A node behind what the stream has captured so far.
Node* capture_node(Stream& stream, NodeKind kind, CUgraphNodeType type);
// Address space of an allocation node, given at once though memory comes with a launch: that of
// memory that the graph has freed before the node, or fresh one.
CUresult reserve_graph_memory(Node& node);
// cuMemFree of memory that a launched graph left to the program.
CUresult release_graph_memory(Simulator& sim, Range& range);

}  // namespace cuwarden::simulated_gpu
