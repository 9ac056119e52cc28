// Entry points for graph nodes that copy and fill, and for the memory that a device keeps for
// graphs from one launch to the next.

#include "tools/simulated_gpu/device/modules.hpp"
#include "tools/simulated_gpu/device/work.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

// Makes `work` what the node does when its graph runs.
template <typename Work>
void set_work(Node& node, Work work) {
  node.work = [work](Stream& stream) {
    enqueue(stream, Clock::duration::zero());
    (void)work();
  };
}

// Adds a node that does `work` when the graph runs.
template <typename Work>
CUresult add_work(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                  NodeKind kind, CUgraphNodeType type, Work work) {
  Node* node = nullptr;
  SIM_TRY(add_node(node, out, graph, dependencies, count, kind, type));
  set_work(*node, work);
  return CUDA_SUCCESS;
}

}  // namespace

namespace entry {

// Addresses are checked when the graph runs: memory of the graph itself exists only then.
CUresult cuGraphAddMemcpyNode(Locked& at, CUgraphNode* out, CUgraph graph,
                              const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMCPY3D* copy, CUcontext context) {
  if (copy == nullptr || at.sim.contexts.find(context) == nullptr || copy->WidthInBytes == 0 ||
      copy->Height == 0 || copy->Depth == 0)
    return CUDA_ERROR_INVALID_VALUE;
  return add_work(out, graph, dependencies, count, NodeKind::copy, CU_GRAPH_NODE_TYPE_MEMCPY,
                  [box = *copy] { return copy_box(box); });
}

CUresult cuGraphAddMemsetNode(Locked& at, CUgraphNode* out, CUgraph graph,
                              const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
  if (fill == nullptr || at.sim.contexts.find(context) == nullptr || fill->width == 0 ||
      fill->height == 0 || !is_filling(*fill))
    return CUDA_ERROR_INVALID_VALUE;
  return add_work(out, graph, dependencies, count, NodeKind::fill, CU_GRAPH_NODE_TYPE_MEMSET,
                  [rows = *fill] { return fill_rows(rows); });
}

CUresult cuGraphExecMemsetNodeSetParams(Locked& at, CUgraphExec handle, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
  GraphExec* const exec = graph_execs().find(handle);
  if (exec == nullptr || fill == nullptr || at.sim.contexts.find(context) == nullptr ||
      fill->width == 0 || fill->height == 0 || !is_filling(*fill))
    return CUDA_ERROR_INVALID_VALUE;
  for (Node& copy : exec->nodes) {
    if (copy.original != reinterpret_cast<const Node*>(node) || copy.kind != NodeKind::fill)
      continue;
    set_work(copy, [rows = *fill] { return fill_rows(rows); });
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGraphMemTrim(Locked& at, CUdevice ordinal) {
  Device* device = at.sim.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  device->refund(device->graph_reserved - device->graph_used);
  device->graph_reserved = device->graph_used;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(Locked& at, CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void* value) {
  Device* device = at.sim.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuuint64_t& out = *static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      out = device->graph_used;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      out = device->graph_used_high;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      out = device->graph_reserved;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      out = device->graph_reserved_high;
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceSetGraphMemAttribute(Locked& at, CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void* value) {
  Device* device = at.sim.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr || *static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
    device->graph_used_high = 0;
  } else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
    device->graph_reserved_high = 0;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
