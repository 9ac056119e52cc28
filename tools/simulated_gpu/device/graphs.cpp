// Nodes of graphs and the memory that graphs allocate.
#include "tools/simulated_gpu/device/graphs.hpp"

#include <map>
#include <set>
#include <vector>

#include "tools/simulated_gpu/device/device_memory.hpp"
#include "tools/simulated_gpu/device/simulator.hpp"

namespace cuwarden::simulated_gpu {

Handles<Graph>& graphs() {
  static auto* const made = new Handles<Graph>;
  return *made;
}

Handles<Node>& nodes() {
  static auto* const made = new Handles<Node>;
  return *made;
}

Handles<GraphExec>& graph_execs() {
  static auto* const made = new Handles<GraphExec>;
  return *made;
}

Node* add_node(Graph& graph, NodeKind kind, CUgraphNodeType type) {
  Node* node = nodes().add(std::make_unique<Node>());
  node->graph = &graph;
  node->kind = kind;
  node->type = type;
  graph.nodes.push_back(node);
  return node;
}

CUresult add_node(Node*& node, CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies,
                  std::size_t count, NodeKind kind, CUgraphNodeType type) {
  Graph* graph = graphs().find(handle);
  if (out == nullptr || graph == nullptr || (dependencies == nullptr && count > 0))
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<Node*> known;
  for (std::size_t i = 0; i < count; ++i) {
    Node* dependency = nodes().find(dependencies[i]);
    if (dependency == nullptr || dependency->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    known.push_back(dependency);
  }
  node = add_node(*graph, kind, type);
  node->dependencies = std::move(known);
  *out = reinterpret_cast<CUgraphNode>(node);
  return CUDA_SUCCESS;
}

Node* capture_node(Stream& stream, NodeKind kind, CUgraphNodeType type) {
  Capture& capture = *stream.capture;
  Node* node = add_node(*capture.graph, kind, type);
  node->dependencies = capture.heads[&stream];
  capture.heads[&stream] = {node};
  return node;
}

namespace {

bool comes_after(const Node& node, const Node& earlier) {
  std::vector<const Node*> left{&node};
  std::set<const Node*> seen;
  while (!left.empty()) {
    const Node* const at = left.back();
    left.pop_back();
    if (at == &earlier) return true;
    for (const Node* dependency : at->dependencies)
      if (seen.insert(dependency).second) left.push_back(dependency);
  }
  return false;
}

// The address of memory of this size that the same graph frees before `node`, and has not given to
// another node since; 0 where there is none.
CUdeviceptr freed_before(const Node& node) {
  std::map<CUdeviceptr, const Node*> freed;
  for (const Node* earlier : node.graph->nodes) {
    if (earlier == &node) break;
    if (earlier->kind == NodeKind::allocate) freed.erase(earlier->allocation.dptr);
    if (earlier->kind == NodeKind::release && comes_after(node, *earlier))
      freed[earlier->freed] = earlier;
  }
  for (const Node* earlier : node.graph->nodes) {
    if (earlier->kind != NodeKind::allocate || !freed.contains(earlier->allocation.dptr)) continue;
    const CUmemLocation &here = earlier->allocation.poolProps.location,
                        &wanted = node.allocation.poolProps.location;
    if (here.type == wanted.type && here.id == wanted.id &&
        round_up(earlier->allocation.bytesize, kPage) == round_up(node.allocation.bytesize, kPage))
      return earlier->allocation.dptr;
  }
  return 0;
}

}  // namespace

CUresult reserve_graph_memory(Node& node) {
  Device* device = simulator().device(node.allocation.poolProps.location.id);
  if (device == nullptr || node.allocation.bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  if (node.allocation.bytesize > device->capacity) return CUDA_ERROR_OUT_OF_MEMORY;
  node.allocation.dptr = freed_before(node);
  if (node.allocation.dptr != 0) return CUDA_SUCCESS;
  if (!device->arena.prepare()) return CUDA_ERROR_OUT_OF_MEMORY;
  node.allocation.dptr = device->arena.take(round_up(node.allocation.bytesize, kPage));
  return node.allocation.dptr == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

void release_graph_memory(Simulator& sim, Range& range) {
  range.device->graph_used -= range.held;
  sim.ranges.erase(range.start);
}

CUresult refuse_under_capture(Simulator& sim) {
  const CUstreamCaptureMode mode = thread_state().capture_mode;
  if (sim.captures.empty() || mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  const auto self = std::this_thread::get_id();
  bool refused = false;
  for (const auto& capture : sim.captures) {
    const bool own = capture->thread == self && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool global =
        mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!own && !global) continue;
    capture->invalidated = true;
    refused = true;
  }
  return refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

}  // namespace cuwarden::simulated_gpu
