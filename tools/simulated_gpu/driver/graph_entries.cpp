// Entry points for building, instantiating and launching graphs.
#include <algorithm>

#include "tools/simulated_gpu/device/modules.hpp"
#include "tools/simulated_gpu/device/work.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

void drop_node(Node& node) {
  std::erase(node.graph->nodes, &node);
  nodes().remove(&node);
}

std::size_t held_by(const Node& node) { return round_up(node.allocation.bytesize, kPage); }

// Takes `bytes` of the device for memory of graphs, beside those that are in use. If they are too
// many, takes nothing.
CUresult reserve(Device& device, std::size_t bytes) {
  const std::size_t spare = device.graph_reserved - device.graph_used;
  if (bytes <= spare) return CUDA_SUCCESS;
  // Trimming takes the spare part away as well, so the missing bytes are counted after it.
  if (!device.charge(bytes - spare)) {
    trim_device(device);
    if (!device.charge(bytes - (device.graph_reserved - device.graph_used)))
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  device.graph_reserved = device.graph_used + bytes;
  device.graph_reserved_high = std::max(device.graph_reserved_high, device.graph_reserved);
  return CUDA_SUCCESS;
}

// Takes the memory that the memory nodes of a graph need at one time, before any node runs: an
// upload or a launch that is refused leaves nothing behind (measured).
CUresult reserve_for(const std::vector<Node>& list) {
  struct Need {
    std::size_t now = 0, most = 0;
  };
  std::map<Device*, Need> needs;
  std::map<CUdeviceptr, const Node*> live;
  for (const Node& node : list) {
    if (!node.enabled) continue;
    if (node.kind == NodeKind::allocate) {
      Need& need = needs[simulator().device(node.allocation.poolProps.location.id)];
      need.now += held_by(node);
      need.most = std::max(need.most, need.now);
      live[node.allocation.dptr] = &node;
    } else if (node.kind == NodeKind::release) {
      const auto found = live.find(node.freed);
      if (found == live.end()) continue;
      const Node& freed = *found->second;
      needs[simulator().device(freed.allocation.poolProps.location.id)].now -= held_by(freed);
      live.erase(found);
    }
  }
  for (const auto& [device, need] : needs) SIM_TRY(reserve(*device, need.most));
  return CUDA_SUCCESS;
}

void allocate_now(const Node& node) {
  Simulator& sim = simulator();
  Device& device = *sim.device(node.allocation.poolProps.location.id);
  const std::size_t held = held_by(node);
  device.graph_used += held;
  device.graph_used_high = std::max(device.graph_used_high, device.graph_used);
  Range range;
  range.start = node.allocation.dptr;
  range.requested = node.allocation.bytesize;
  range.held = held;
  range.kind = RangeKind::graph;
  range.device = &device;
  sim.ranges.insert(range);
}

CUresult free_now(CUdeviceptr address, Stream& stream) {
  Simulator& sim = simulator();
  Range* range = sim.ranges.at(address);
  if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (range->kind == RangeKind::graph) {
    release_graph_memory(sim, *range);
    return CUDA_SUCCESS;
  }
  if (range->kind != RangeKind::stream_ordered) return CUDA_ERROR_INVALID_VALUE;
  MemoryPool* pool = range->pool;
  sim.ranges.erase(address);
  pool->give_pending(address, &stream);
  return CUDA_SUCCESS;
}

CUresult run(const std::vector<Node>& list, Stream& stream) {
  SIM_TRY(reserve_for(list));
  for (const Node& node : list) {
    if (!node.enabled) continue;
    if (node.kind == NodeKind::allocate) allocate_now(node);
    if (node.kind == NodeKind::release) SIM_TRY(free_now(node.freed, stream));
    if (node.work) node.work(stream);
  }
  return CUDA_SUCCESS;
}

void flatten(const Graph& graph, std::vector<Node>& list) {
  for (const Node* node : graph.nodes) {
    if (node->kind == NodeKind::child && node->child != nullptr) {
      flatten(*node->child, list);
    } else {
      list.push_back(*node);
      list.back().original = node;
    }
  }
}

CUresult instantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
  InContext at;
  SIM_TRY(at.error);
  Graph* graph = graphs().find(handle);
  if (out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto exec = std::make_unique<GraphExec>();
  exec->context = at.context;
  exec->flags = flags;
  flatten(*graph, exec->nodes);
  for (const Node& node : exec->nodes) {
    if (node.kind == NodeKind::fill) exec->bytes += kGraphFillCost;
    const Kernel* const kernel =
        node.kind == NodeKind::kernel ? kernels().find(node.kernel) : nullptr;
    if (kernel == nullptr) continue;
    SIM_TRY(prepare_launch(*at.context, *kernel));
    exec->bytes += kGraphKernelCost;
  }
  if (!take_object_memory(*at.context, at.context->graph_exec_memory, exec->bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  *out = reinterpret_cast<CUgraphExec>(graph_execs().add(std::move(exec)));
  return CUDA_SUCCESS;
}

}  // namespace

namespace entry {

CUresult cuGraphCreate(Locked&, CUgraph* out, unsigned int flags) {
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUgraph>(graphs().add(std::make_unique<Graph>()));
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(Locked&, CUgraph handle) {
  Graph* graph = graphs().find(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (Node* node : graph->nodes) nodes().remove(node);
  graphs().remove(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphAddEmptyNode(Locked&, CUgraphNode* out, CUgraph handle,
                             const CUgraphNode* dependencies, size_t count) {
  Node* node = nullptr;
  return add_node(node, out, handle, dependencies, count, NodeKind::empty,
                  CU_GRAPH_NODE_TYPE_EMPTY);
}

CUresult cuGraphAddChildGraphNode(Locked&, CUgraphNode* out, CUgraph handle,
                                  const CUgraphNode* dependencies, size_t count, CUgraph child) {
  Node* node = nullptr;
  Graph* inner = graphs().find(child);
  if (inner == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(
      add_node(node, out, handle, dependencies, count, NodeKind::child, CU_GRAPH_NODE_TYPE_GRAPH));
  node->child = inner;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode_v2(Locked& at, CUgraphNode* out, CUgraph handle,
                                 const CUgraphNode* dependencies, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS* parameters) {
  Node* node = nullptr;
  if (parameters == nullptr || kernels().find(parameters->func) == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(add_node(node, out, handle, dependencies, count, NodeKind::kernel,
                   CU_GRAPH_NODE_TYPE_KERNEL));
  node->kernel = parameters->func;
  const Clock::duration time = at.sim.settings.kernel_time;
  node->work = [time](Stream& stream) { enqueue(stream, time); };
  return CUDA_SUCCESS;
}

CUresult cuGraphAddMemAllocNode(Locked&, CUgraphNode* out, CUgraph handle,
                                const CUgraphNode* dependencies, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  Node* node = nullptr;
  if (parameters == nullptr || parameters->bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(add_node(node, out, handle, dependencies, count, NodeKind::allocate,
                   CU_GRAPH_NODE_TYPE_MEM_ALLOC));
  node->allocation = *parameters;
  if (const CUresult result = reserve_graph_memory(*node); result != CUDA_SUCCESS) {
    drop_node(*node);
    return result;
  }
  parameters->dptr = node->allocation.dptr;
  return CUDA_SUCCESS;
}

CUresult cuGraphMemAllocNodeGetParams(Locked&, CUgraphNode handle,
                                      CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  const Node* node = nodes().find(handle);
  if (node == nullptr || node->kind != NodeKind::allocate || parameters == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  *parameters = node->allocation;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddMemFreeNode(Locked&, CUgraphNode* out, CUgraph handle,
                               const CUgraphNode* dependencies, size_t count, CUdeviceptr address) {
  Node* node = nullptr;
  if (address == 0) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(add_node(node, out, handle, dependencies, count, NodeKind::release,
                   CU_GRAPH_NODE_TYPE_MEM_FREE));
  node->freed = address;
  return CUDA_SUCCESS;
}

CUresult cuGraphMemFreeNodeGetParams(Locked&, CUgraphNode handle, CUdeviceptr* address) {
  const Node* node = nodes().find(handle);
  if (node == nullptr || node->kind != NodeKind::release || address == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  *address = node->freed;
  return CUDA_SUCCESS;
}

// Supports the node kinds that concern memory and launches.
CUresult cuGraphAddNode_v2(Locked& at, CUgraphNode* out, CUgraph graph,
                           const CUgraphNode* dependencies, const CUgraphEdgeData*, size_t count,
                           CUgraphNodeParams* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return entry::cuGraphAddEmptyNode(at, out, graph, dependencies, count);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
      wanted.poolProps = parameters->alloc.poolProps;
      wanted.accessDescs = parameters->alloc.accessDescs;
      wanted.accessDescCount = parameters->alloc.accessDescCount;
      wanted.bytesize = parameters->alloc.bytesize;
      SIM_TRY(entry::cuGraphAddMemAllocNode(at, out, graph, dependencies, count, &wanted));
      parameters->alloc.dptr = wanted.dptr;
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return entry::cuGraphAddMemFreeNode(at, out, graph, dependencies, count,
                                          parameters->free.dptr);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return entry::cuGraphAddMemcpyNode(at, out, graph, dependencies, count,
                                         &parameters->memcpy.copyParams,
                                         parameters->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& rows = parameters->memset;
      const CUDA_MEMSET_NODE_PARAMS wanted{rows.dst,         rows.pitch, rows.value,
                                           rows.elementSize, rows.width, rows.height};
      return entry::cuGraphAddMemsetNode(at, out, graph, dependencies, count, &wanted, rows.ctx);
    }
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult cuGraphAddNode(Locked& at, CUgraphNode* out, CUgraph graph,
                        const CUgraphNode* dependencies, size_t count,
                        CUgraphNodeParams* parameters) {
  return entry::cuGraphAddNode_v2(at, out, graph, dependencies, nullptr, count, parameters);
}

CUresult cuGraphDestroyNode(Locked&, CUgraphNode handle) {
  Node* node = nodes().find(handle);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  drop_node(*node);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(Locked&, CUgraphNode handle, CUgraphNodeType* type) {
  const Node* node = nodes().find(handle);
  if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = node->type;
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(Locked&, CUgraph handle, CUgraphNode* out, size_t* count) {
  const Graph* graph = graphs().find(handle);
  if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out != nullptr) {
    for (size_t i = 0; i < *count; ++i)
      out[i] = i < graph->nodes.size() ? reinterpret_cast<CUgraphNode>(graph->nodes[i]) : nullptr;
    *count = std::min(*count, graph->nodes.size());
  } else {
    *count = graph->nodes.size();
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphGetRootNodes(Locked&, CUgraph handle, CUgraphNode* out, size_t* count) {
  const Graph* graph = graphs().find(handle);
  if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  size_t found = 0;
  for (Node* node : graph->nodes) {
    if (!node->dependencies.empty()) continue;
    if (out != nullptr && found < *count) out[found] = reinterpret_cast<CUgraphNode>(node);
    ++found;
  }
  *count = out != nullptr ? std::min(*count, found) : found;
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  return instantiate(out, graph, flags);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = instantiate(out, graph, parameters->flags);
  parameters->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  parameters->hErrNode_out = nullptr;
  return result;
}

CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char*,
                               size_t) {
  if (error_node != nullptr) *error_node = nullptr;
  return instantiate(out, graph, 0);
}

CUresult cuGraphExecGetFlags(Locked&, CUgraphExec handle, cuuint64_t* flags) {
  const GraphExec* exec = graph_execs().find(handle);
  if (exec == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(Locked&, CUgraphExec handle) {
  GraphExec* exec = graph_execs().find(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!exec->context->destroyed) exec->context->graph_exec_memory.used_bytes -= exec->bytes;
  graph_execs().remove(exec);
  return CUDA_SUCCESS;
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
  InStream at(stream_handle);
  SIM_TRY(at.error);
  const GraphExec* exec = graph_execs().find(handle);
  return exec != nullptr ? reserve_for(exec->nodes) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphLaunch(InContext& at, CUgraphExec handle, CUstream stream_handle) {
  GraphExec* exec = graph_execs().find(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(*at.context, stream_handle, stream));
  if (stream->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const bool auto_free = (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  for (const Node& node : exec->nodes) {
    if (node.kind != NodeKind::allocate) continue;
    Range* live = at.sim.ranges.at(node.allocation.dptr);
    if (live == nullptr) continue;
    if (!auto_free) return CUDA_ERROR_INVALID_VALUE;  // Memory of the last launch was not freed.
    release_graph_memory(at.sim, *live);
  }
  return run(exec->nodes, *stream);
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
