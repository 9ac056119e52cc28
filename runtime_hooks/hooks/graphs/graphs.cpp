// Hooks of graphs and of stream capture, which turns calls into graph nodes.
#include "runtime_hooks/driver/gate_scope.hpp"
#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/hooks/execution/object_span.hpp"
#include "runtime_hooks/hooks/graphs/graph_instantiation.hpp"
#include "runtime_hooks/hooks/graphs/graph_memory.hpp"

namespace cuwarden::hooks {
namespace {

enum class DefaultStream { legacy, per_thread };

template <class Begin>
CUresult begin_capture(HookedCall& call, CUstream stream, DefaultStream null,
                       CUstreamCaptureMode mode, Begin begin) {
  if (!call.recording()) return begin();
  // Memory that is being moved has been moved before the capture begins.
  const driver::GateScope at_the_gate;
  const GraphParts parts = call.graphs();
  call.keeps_bases();
  const bool is_new = parts.capture_begins(stream, null == DefaultStream::per_thread, mode);
  const CUresult result = begin();
  if (result == CUDA_SUCCESS)
    parts.captures.began();
  else if (is_new)
    parts.captures.ended(stream, null == DefaultStream::per_thread);
  return result;
}

// A call that ends a capture may fail and leave the capture as it was. After a failure the driver
// is therefore asked whether the stream is still being captured.
template <class End>
CUresult end_capture(HookedCall& call, CUstream stream, DefaultStream null,
                     CUresult(CUDAAPI* query)(CUstream, CUstreamCaptureStatus*), End end) {
  const CUresult result = end();
  if (!call.recording()) return result;
  call.keeps_bases();
  if (!call.graphs().captures.any()) return result;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (result != CUDA_SUCCESS && query != nullptr && query(stream, &status) == CUDA_SUCCESS &&
      status != CU_STREAM_CAPTURE_STATUS_NONE)
    return result;
  call.graphs().captures.ended(stream, null == DefaultStream::per_thread);
  if (call.graphs().pools.free_deferred_if_idle())
    call.execution().implicit.bases.memory_may_change();
  return result;
}

template <class Instantiate>
CUresult instantiated(HookedCall& call, const CUgraphExec* exec, CUgraph graph,
                      Instantiate instantiate) {
  const auto attempt = [&] {
    GraphInstantiation instantiation(call);
    const CUresult result = instantiate();
    if (result == CUDA_SUCCESS) {
      // A thread may have noted the handle as launched after the graph that had it was destroyed.
      submitted_graphs.remove(*exec);
      instantiation.done(*exec);
      graph_instantiated(call, *exec, graph);
    }
    return result;
  };
  return call.rescued(attempt(), {ledger::Asked::graph}, attempt);
}

// Rungs may move memory, so the thread has left the gate when they are tried.
template <class Submit>
CUresult submitted(HookedCall& call, CUgraphExec exec, Submit submit) {
  const auto attempt = [&] {
    const driver::GateScope at_the_gate;
    return submit();
  };
  const CUresult result = attempt();
  return result == CUDA_SUCCESS
             ? result
             : call.rescued(result, {ledger::Asked::graph, device_of_graph(call, exec)}, attempt);
}

// Makes a call that submits an executable graph. The first one may take memory for the graph, if
// its memory nodes take none.
template <class Submit>
CUresult submitted_first(HookedCall& call, CUgraphExec exec, Submit submit) {
  if (!call.recording() || graph_has_memory(exec)) return submit();
  if (submitted_graphs.has(exec)) {
    call.keeps_bases();
    return submit();
  }
  ObjectSpan span(call);
  const CUresult result = submit();
  if (result != CUDA_SUCCESS) return result;
  span.used(object_of_graph(exec));
  submitted_graphs.add(exec);
  return result;
}

template <class Launch>
CUresult launched(HookedCall& call, Launch launch, CUgraphExec exec) {
  return submitted(call, exec, [&] {
    const CUresult result = submitted_first(call, exec, launch);
    if (result == CUDA_SUCCESS) graph_launched(call, exec);
    return result;
  });
}

// An upload maps the memory of the graph's memory nodes.
template <class Upload>
CUresult uploaded(HookedCall& call, CUgraphExec exec, Upload upload) {
  return submitted(call, exec, [&] { return submitted_first(call, exec, upload); });
}

// After a successful update, launches of `exec` allocate and free what `graph` says.
template <class Update>
CUresult updated(HookedCall& call, CUgraphExec exec, CUgraph graph, Update update) {
  ObjectSpan span(call);
  const CUresult result = update();
  if (!call.recording() || result != CUDA_SUCCESS) return result;
  span.used(object_of_graph(exec));
  graph_instantiated(call, exec, graph);
  if (graph_has_memory(exec)) submitted_graphs.remove(exec);
  return result;
}

#if CUDA_VERSION >= 12020
template <class Add>
CUresult node_added(HookedCall& call, const CUgraphNodeParams* parameters, Add add) {
  const CUresult result = add();
  if (result == CUDA_SUCCESS && parameters->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    const CUDA_MEM_ALLOC_NODE_PARAMS_v2& node = parameters->alloc;
    graph_node_created(call, result, node.dptr, node.bytesize,
                       DeviceOrdinal{node.poolProps.location.id});
  }
  return result;
}
#endif

}  // namespace

#define OF_GRAPH CUWARDEN_HOOK_BY
#include "runtime_hooks/driver/hooks.def"

CUresult cuGraphAddMemAllocNode(HookedCall& call, CUgraphNode* phGraphNode, CUgraph hGraph,
                                const CUgraphNode* dependencies, size_t numDependencies,
                                CUDA_MEM_ALLOC_NODE_PARAMS* nodeParams) {
  const CUresult result = call.real().cuGraphAddMemAllocNode(phGraphNode, hGraph, dependencies,
                                                             numDependencies, nodeParams);
  if (result == CUDA_SUCCESS)
    graph_node_created(call, result, nodeParams->dptr, nodeParams->bytesize,
                       DeviceOrdinal{nodeParams->poolProps.location.id});
  return result;
}

CUresult cuGraphLaunch(HookedCall& call, CUgraphExec hGraph, CUstream hStream) {
  return launched(
      call, [&] { return call.real().cuGraphLaunch(hGraph, hStream); }, hGraph);
}

CUresult cuGraphLaunch_ptsz(HookedCall& call, CUgraphExec hGraphExec, CUstream hStream) {
  return launched(
      call, [&] { return call.real().cuGraphLaunch_ptsz(hGraphExec, hStream); }, hGraphExec);
}

CUresult cuGraphExecDestroy(HookedCall& call, CUgraphExec hGraphExec) {
  ObjectEnd end(call, object_of_graph(hGraphExec), ObjectSpan::When::within_budget);
  submitted_graphs.remove(hGraphExec);
  const CUresult result = call.real().cuGraphExecDestroy(hGraphExec);
  end.done(result);
  if (result == CUDA_SUCCESS) graph_exec_destroyed(hGraphExec);
  return result;
}

}  // namespace cuwarden::hooks
