// Hooks of graphs and of stream capture, which turns calls into graph nodes.
#include "runtime_hooks/driver/gate_scope.hpp"
#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/hooks/execution/launches.hpp"
#include "runtime_hooks/hooks/execution/object_span.hpp"
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
CUresult end_capture(HookedCall& call, CUstream stream, DefaultStream null, End end,
                     CUresult(CUDAAPI* query)(CUstream, CUstreamCaptureStatus*)) {
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

template <class Upload>
CUresult uploaded(HookedCall& call, Upload upload, CUgraphExec exec) {
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
CUresult node_added(HookedCall& call, CUresult result, const CUgraphNodeParams* parameters) {
  if (result == CUDA_SUCCESS && parameters->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    const CUDA_MEM_ALLOC_NODE_PARAMS_v2& node = parameters->alloc;
    graph_node_created(call, result, node.dptr, node.bytesize,
                       DeviceOrdinal{node.poolProps.location.id});
  }
  return result;
}
#endif

}  // namespace

CUresult cuStreamBeginCapture(HookedCall& call, CUstream hStream) {
  return begin_capture(call, hStream, DefaultStream::legacy, CU_STREAM_CAPTURE_MODE_GLOBAL,
                       [&] { return call.real().cuStreamBeginCapture(hStream); });
}

CUresult cuStreamBeginCapture_ptsz(HookedCall& call, CUstream hStream) {
  return begin_capture(call, hStream, DefaultStream::per_thread, CU_STREAM_CAPTURE_MODE_GLOBAL,
                       [&] { return call.real().cuStreamBeginCapture_ptsz(hStream); });
}

CUresult cuStreamBeginCapture_v2(HookedCall& call, CUstream hStream, CUstreamCaptureMode mode) {
  return begin_capture(call, hStream, DefaultStream::legacy, mode,
                       [&] { return call.real().cuStreamBeginCapture_v2(hStream, mode); });
}

CUresult cuStreamBeginCapture_v2_ptsz(HookedCall& call, CUstream hStream,
                                      CUstreamCaptureMode mode) {
  return begin_capture(call, hStream, DefaultStream::per_thread, mode,
                       [&] { return call.real().cuStreamBeginCapture_v2_ptsz(hStream, mode); });
}

#if CUDA_VERSION >= 12030
CUresult cuStreamBeginCaptureToGraph(HookedCall& call, CUstream hStream, CUgraph hGraph,
                                     const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  return begin_capture(call, hStream, DefaultStream::legacy, mode, [&] {
    return call.real().cuStreamBeginCaptureToGraph(hStream, hGraph, dependencies, dependencyData,
                                                   numDependencies, mode);
  });
}
#endif

#if CUDA_VERSION >= 12030
CUresult cuStreamBeginCaptureToGraph_ptsz(HookedCall& call, CUstream hStream, CUgraph hGraph,
                                          const CUgraphNode* dependencies,
                                          const CUgraphEdgeData* dependencyData,
                                          size_t numDependencies, CUstreamCaptureMode mode) {
  return begin_capture(call, hStream, DefaultStream::per_thread, mode, [&] {
    return call.real().cuStreamBeginCaptureToGraph_ptsz(hStream, hGraph, dependencies,
                                                        dependencyData, numDependencies, mode);
  });
}
#endif

CUresult cuStreamBeginRecaptureToGraph(HookedCall& call, CUstream hStream, CUstreamCaptureMode mode,
                                       CUgraph hGraph, void* callbackFunc, void* userData) {
  return begin_capture(call, hStream, DefaultStream::legacy, mode, [&] {
    return call.real().cuStreamBeginRecaptureToGraph(hStream, mode, hGraph, callbackFunc, userData);
  });
}

CUresult cuStreamBeginRecaptureToGraph_ptsz(HookedCall& call, CUstream hStream,
                                            CUstreamCaptureMode mode, CUgraph hGraph,
                                            void* callbackFunc, void* userData) {
  return begin_capture(call, hStream, DefaultStream::per_thread, mode, [&] {
    return call.real().cuStreamBeginRecaptureToGraph_ptsz(hStream, mode, hGraph, callbackFunc,
                                                          userData);
  });
}

CUresult cuStreamEndCapture(HookedCall& call, CUstream hStream, CUgraph* phGraph) {
  return end_capture(
      call, hStream, DefaultStream::legacy,
      [&] { return call.real().cuStreamEndCapture(hStream, phGraph); },
      call.real().cuStreamIsCapturing);
}

CUresult cuStreamEndCapture_ptsz(HookedCall& call, CUstream hStream, CUgraph* phGraph) {
  return end_capture(
      call, hStream, DefaultStream::per_thread,
      [&] { return call.real().cuStreamEndCapture_ptsz(hStream, phGraph); },
      call.real().cuStreamIsCapturing_ptsz);
}

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

#if CUDA_VERSION >= 12020
CUresult cuGraphAddNode(HookedCall& call, CUgraphNode* phGraphNode, CUgraph hGraph,
                        const CUgraphNode* dependencies, size_t numDependencies,
                        CUgraphNodeParams* nodeParams) {
  return node_added(
      call,
      call.real().cuGraphAddNode(phGraphNode, hGraph, dependencies, numDependencies, nodeParams),
      nodeParams);
}
#endif

#if CUDA_VERSION >= 12030
CUresult cuGraphAddNode_v2(HookedCall& call, CUgraphNode* phGraphNode, CUgraph hGraph,
                           const CUgraphNode* dependencies, const CUgraphEdgeData* dependencyData,
                           size_t numDependencies, CUgraphNodeParams* nodeParams) {
  return node_added(call,
                    call.real().cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, dependencyData,
                                                  numDependencies, nodeParams),
                    nodeParams);
}
#endif

CUresult cuGraphInstantiate(HookedCall& call, CUgraphExec* phGraphExec, CUgraph hGraph,
                            CUgraphNode* phErrorNode, char* logBuffer, size_t bufferSize) {
  return instantiated(call, phGraphExec, hGraph, [&] {
    return call.real().cuGraphInstantiate(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
  });
}

CUresult cuGraphInstantiate_v2(HookedCall& call, CUgraphExec* phGraphExec, CUgraph hGraph,
                               CUgraphNode* phErrorNode, char* logBuffer, size_t bufferSize) {
  return instantiated(call, phGraphExec, hGraph, [&] {
    return call.real().cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer,
                                             bufferSize);
  });
}

CUresult cuGraphInstantiateWithFlags(HookedCall& call, CUgraphExec* phGraphExec, CUgraph hGraph,
                                     unsigned long long flags) {
  return instantiated(call, phGraphExec, hGraph, [&] {
    return call.real().cuGraphInstantiateWithFlags(phGraphExec, hGraph, flags);
  });
}

CUresult cuGraphInstantiateWithParams(HookedCall& call, CUgraphExec* phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
  return instantiated(call, phGraphExec, hGraph, [&] {
    return call.real().cuGraphInstantiateWithParams(phGraphExec, hGraph, instantiateParams);
  });
}

CUresult cuGraphInstantiateWithParams_ptsz(HookedCall& call, CUgraphExec* phGraphExec,
                                           CUgraph hGraph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
  return instantiated(call, phGraphExec, hGraph, [&] {
    return call.real().cuGraphInstantiateWithParams_ptsz(phGraphExec, hGraph, instantiateParams);
  });
}

CUresult cuGraphLaunch(HookedCall& call, CUgraphExec hGraph, CUstream hStream) {
  return launched(
      call, [&] { return call.real().cuGraphLaunch(hGraph, hStream); }, hGraph);
}

CUresult cuGraphLaunch_ptsz(HookedCall& call, CUgraphExec hGraphExec, CUstream hStream) {
  return launched(
      call, [&] { return call.real().cuGraphLaunch_ptsz(hGraphExec, hStream); }, hGraphExec);
}

// An upload maps the memory of the graph's memory nodes.
CUresult cuGraphUpload(HookedCall& call, CUgraphExec hGraph, CUstream hStream) {
  return uploaded(
      call, [&] { return call.real().cuGraphUpload(hGraph, hStream); }, hGraph);
}

CUresult cuGraphUpload_ptsz(HookedCall& call, CUgraphExec hGraphExec, CUstream hStream) {
  return uploaded(
      call, [&] { return call.real().cuGraphUpload_ptsz(hGraphExec, hStream); }, hGraphExec);
}

CUresult cuGraphExecUpdate(HookedCall& call, CUgraphExec hGraphExec, CUgraph hGraph,
                           CUgraphNode* hErrorNode_out, CUgraphExecUpdateResult* updateResult_out) {
  return updated(call, hGraphExec, hGraph, [&] {
    return call.real().cuGraphExecUpdate(hGraphExec, hGraph, hErrorNode_out, updateResult_out);
  });
}

CUresult cuGraphExecUpdate_v2(HookedCall& call, CUgraphExec hGraphExec, CUgraph hGraph,
                              CUgraphExecUpdateResultInfo* resultInfo) {
  return updated(call, hGraphExec, hGraph,
                 [&] { return call.real().cuGraphExecUpdate_v2(hGraphExec, hGraph, resultInfo); });
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
