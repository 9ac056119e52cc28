// CUDA graphs of the simulated driver, the device memory that they hold, and the capture of streams
// into graphs. Guarded by the simulator's lock (Simulator::mutex).
#pragma once

#include <thread>

#include "tools/simulated_gpu/device/simulator.hpp"

namespace cuwarden::simulated_gpu {

// Kinds of work that a node of a graph stands for. `allocate` and `release`: the node allocates or
// frees memory of the graph. `child`: another graph. `other`: a kind whose work is not simulated.
enum class NodeKind { empty, kernel, copy, fill, host, allocate, release, child, event, other };

struct Graph;

// A node of a graph. Its handle, a CUgraphNode, is its address.
struct Node {
  Graph* graph = nullptr;  // The graph that the node belongs to.
  NodeKind kind = NodeKind::empty;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;  // The type that the program is told.
  std::vector<Node*> dependencies;                  // Nodes of the graph that must run before.
  bool destroyed = false;
  bool enabled = true;                      // False: a launch leaves the node out.
  CUDA_MEM_ALLOC_NODE_PARAMS allocation{};  // Only for kind `allocate`.
  CUdeviceptr freed = 0;                    // Only for kind `release`: the address that is freed.
  // The work that a launch does for the node, in the given stream; null: none. Called under the
  // simulator's lock, so it must be short.
  std::function<void(Stream&)> work;
  Graph* child = nullptr;            // Only for kind `child`: the graph that is inserted.
  CUDA_KERNEL_NODE_PARAMS kernel{};  // Only for kind `kernel`.
  CUDA_HOST_NODE_PARAMS host{};      // Only for kind `host`.
  CUevent event = nullptr;           // Only for kind `event`.
};

// A graph. Its handle, a CUgraph, is its address.
struct Graph {
  std::vector<Node*> nodes;  // In the order in which they were added; owned by nodes().
  bool destroyed = false;
};

// A graph that was instantiated, so that it can be launched. Its handle, a CUgraphExec, is its
// address.
struct GraphExec {
  Context* context = nullptr;  // The context in which the graph was instantiated.
  // Copies of the graph's nodes, in an order in which each comes after its dependencies.
  std::vector<Node> nodes;
  unsigned long long flags = 0;  // CUgraphInstantiate_flags
};

// A capture (cuStreamBeginCapture): calls in its streams become nodes of a graph, and are not done.
struct Capture {
  Graph* graph = nullptr;  // The graph that gets the nodes.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;     // The thread that began the capture.
  Stream* origin = nullptr;   // The stream in which the capture began, and must end.
  unsigned long long id = 0;  // Number of the capture, as cuStreamGetCaptureInfo tells it.
  bool invalidated = false;   // True after a forbidden call: the capture can only be ended.
  bool owns_graph = true;     // False if the program gave the graph (cuStreamBeginCaptureToGraph).
  // For each stream that takes part in the capture: the nodes that the next node of the stream will
  // depend on.
  std::map<Stream*, std::vector<Node*>> heads;
};

// Returns the table of all graphs of the process.
Handles<Graph>& graphs();
// Returns the table of all nodes of all graphs of the process.
Handles<Node>& nodes();
// Returns the table of all instantiated graphs of the process.
Handles<GraphExec>& graph_execs();

// Adds a node without dependencies to the graph. Returns the node, which nodes() owns.
Node* add_node(Graph& graph, NodeKind kind, CUgraphNodeType type);
// Adds a node to the graph that a call of the program names, such as cuGraphAddEmptyNode.
// `dependencies`: handles of `count` nodes of the graph. Sets `node` to the new node and *out to
// its handle. Returns CUDA_ERROR_INVALID_VALUE, and adds nothing, if a handle is not valid or `out`
// is null.
CUresult add_node(Node*& node, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                  std::size_t count, NodeKind kind, CUgraphNodeType type);
// Adds a node to the graph of the stream's capture, after everything that the stream has captured
// so far. The stream must be capturing.
Node* capture_node(Stream& stream, NodeKind kind, CUgraphNodeType type);
// Reserves an address range for an allocation node, and stores it in Node::allocation. A range of
// this size that the same graph frees before the node is used again; otherwise the range is new.
// The memory itself is taken only when the graph is launched. Returns an error if the size is 0, or
// if there is no room.
CUresult reserve_graph_memory(Node& node);
// Frees memory that an allocation node gave out in a launch, for a call such as cuMemFree. `range`:
// the memory, which is removed from the table of ranges. The device's bytes are kept for later
// launches, until the device is trimmed.
void release_graph_memory(Simulator& sim, Range& range);

}  // namespace cuwarden::simulated_gpu
