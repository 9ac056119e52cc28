// CUDA graphs of the simulated driver, the device memory that they hold, and the capture of streams
// into graphs. Guarded by the simulator's lock (Simulator::mutex).
#pragma once

#include <thread>

#include "tools/simulated_gpu/device/simulator.hpp"

namespace cuwarden::simulated_gpu {

// Kinds of work that a node of a graph does in a launch. `empty`: none. `host`: calls a host
// function. `allocate`, `release`: allocates or frees device memory. `child`: runs another graph.
enum class NodeKind { empty, kernel, copy, fill, host, allocate, release, child };

struct Graph;

// A node of a graph. Its handle, a CUgraphNode, is the object's address.
struct Node {
  Graph* graph = nullptr;           // The graph that contains the node.
  NodeKind kind = NodeKind::empty;  // The work that the simulated driver does for the node.
  // Type of the node: the result of cuGraphNodeGetType.
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  // Nodes of the same graph that must have run before this node runs.
  std::vector<Node*> dependencies;
  bool enabled = true;  // True: a launch runs the node; false: a launch leaves the node out.
  // Only for kind `allocate`: the memory that the node allocates; `dptr` is its reserved address.
  CUDA_MEM_ALLOC_NODE_PARAMS allocation{};
  // Only for kind `release`: address of the memory that the node frees; 0 for other kinds.
  CUdeviceptr freed = 0;
  // Function that each launch of the graph calls for the node; empty: none. Its argument is the
  // stream of the launch. The caller holds Simulator::mutex, so the function must be short.
  std::function<void(Stream&)> work;
  Graph* child = nullptr;       // Only for kind `child`: the graph that the node runs.
  CUfunction kernel = nullptr;  // Only for kind `kernel`: handle of the kernel.
  // Only for a copy in an instantiated graph: the node of which it is a copy; not owned.
  const Node* original = nullptr;
};

// A graph. Its handle, a CUgraph, is the object's address.
struct Graph {
  // The graph's nodes, in the order in which they were added. The table nodes() owns them.
  std::vector<Node*> nodes;
};

// A graph that was instantiated, so that it can be launched. Its handle, a CUgraphExec, is the
// object's address.
struct GraphExec {
  Context* context = nullptr;  // The context in which the graph was instantiated.
  // Copies of the graph's nodes in the order in which the program added them. A launch runs them in
  // this order. A node of kind `child` is replaced by the nodes of its child graph.
  std::vector<Node> nodes;
  unsigned long long flags = 0;  // CUgraphInstantiate_flags that the program gave.
  // Bytes of device memory that are counted for this graph in Context::graph_exec_memory.
  std::size_t bytes = 0;
};

// A capture of streams into a graph (cuStreamBeginCapture). A call that submits work to one of
// these streams adds a node to the graph instead. The work is done when the graph is launched.
struct Capture {
  Graph* graph = nullptr;  // The graph that gets the nodes of the capture.
  // Mode that the program gave: it says which calls the capture forbids, and in which threads.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;     // The thread that began the capture.
  Stream* origin = nullptr;   // The stream in which the capture began, and must end.
  unsigned long long id = 0;  // Id of the capture: a result of cuStreamGetCaptureInfo.
  // True once the program has made a call that the capture forbids. Further work in the capture's
  // streams, and cuStreamEndCapture, then return an error.
  bool invalidated = false;
  // True if the capture has made its graph: the graph is removed if the capture ends invalidated.
  // False if the program gave the graph (cuStreamBeginCaptureToGraph).
  bool owns_graph = true;
  // For each stream that takes part in the capture: the nodes on which the next node that the
  // stream adds will depend.
  std::map<Stream*, std::vector<Node*>> heads;
};

// Returns the table of all graphs of the process. Callers hold Simulator::mutex while they use the
// table.
Handles<Graph>& graphs();
// Returns the table of all nodes of all graphs of the process. Callers hold Simulator::mutex while
// they use the table.
Handles<Node>& nodes();
// Returns the table of all instantiated graphs of the process. Callers hold Simulator::mutex while
// they use the table.
Handles<GraphExec>& graph_execs();

// Adds a node without dependencies to the graph. `kind`: the work that the simulated driver does
// for the node. `type`: the result of cuGraphNodeGetType for the node. Returns the node, which the
// table nodes() owns.
Node* add_node(Graph& graph, NodeKind kind, CUgraphNodeType type);
// Adds a node to a graph, for a call of the program such as cuGraphAddEmptyNode. `graph`: handle of
// the graph. `dependencies`: handles of `count` nodes of the graph, on which the new node depends.
// `kind`: the work that the simulated driver does for the node. `type`: the result of
// cuGraphNodeGetType for the node. Sets `node` to the new node, which the table nodes() owns, and
// *out to its handle. Returns CUDA_ERROR_INVALID_VALUE, and adds nothing, if a handle is not valid,
// `out` is null, or `dependencies` is null and `count` is not 0.
CUresult add_node(Node*& node, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                  std::size_t count, NodeKind kind, CUgraphNodeType type);
// Adds a node to the graph into which the stream is being captured. The node depends on the nodes
// that Capture::heads lists for the stream, and replaces them there. `stream.capture` must not be
// null. `kind`: the work that the simulated driver does for the node. `type`: the result of
// cuGraphNodeGetType for the node. Returns the node, which the table nodes() owns.
Node* capture_node(Stream& stream, NodeKind kind, CUgraphNodeType type);
// Reserves an address range for a node of kind `allocate`, and stores its start in
// `node.allocation.dptr`. Reuses the range of an earlier node of the graph if its size and device
// are equal and a node on which `node` depends frees it. Otherwise takes new addresses. The memory
// itself is taken only when the graph is launched. Returns CUDA_ERROR_INVALID_VALUE if the size is
// 0 or the device unknown. Returns CUDA_ERROR_OUT_OF_MEMORY if the size exceeds the device's memory
// or the process has too little address space.
CUresult reserve_graph_memory(Node& node);
// Frees memory that a launched graph has allocated, for a call such as cuMemFree. `range`: the
// memory, an entry of `sim.ranges`, which is removed. The driver keeps the device's bytes for later
// launches of graphs, until trim_device() gives them back.
void release_graph_memory(Simulator& sim, Range& range);

}  // namespace cuwarden::simulated_gpu
