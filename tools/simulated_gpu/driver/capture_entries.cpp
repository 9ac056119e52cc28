// Entry points for captures: a stream records its calls into a graph.
#include "tools/simulated_gpu/device/work.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

CUresult begin(CUstream handle, CUstreamCaptureMode mode, Graph* into) {
  InStream at(handle);
  SIM_TRY(at.error);
  if (at.stream == &at.stream->context->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (at.stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->graph = into != nullptr ? into : graphs().add(std::make_unique<Graph>());
  capture->owns_graph = into == nullptr;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = at.stream;
  capture->id = at.sim.next_id++;
  capture->heads[at.stream] = {};
  at.stream->capture = capture;
  at.sim.captures.push_back(capture);
  return CUDA_SUCCESS;
}

CUresult info(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
              const CUgraphNode** dependencies, size_t* count) {
  InStream at(handle);
  SIM_TRY(at.error);
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (is_implicitly_captured(*at.stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (!at.stream->capture) return CUDA_SUCCESS;
  Capture& capture = *at.stream->capture;
  *status =
      capture.invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (id != nullptr) *id = capture.id;
  if (graph != nullptr) *graph = reinterpret_cast<CUgraph>(capture.graph);
  const auto& heads = capture.heads[at.stream];
  if (dependencies != nullptr) *dependencies = reinterpret_cast<const CUgraphNode*>(heads.data());
  if (count != nullptr) *count = heads.size();
  return CUDA_SUCCESS;
}

}  // namespace

namespace entry {

CUresult cuStreamBeginCapture(CUstream stream) {
  return begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, nullptr);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begin(stream, mode, nullptr);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle, const CUgraphNode*,
                                     const CUgraphEdgeData*, size_t, CUstreamCaptureMode mode) {
  Graph* graph = nullptr;
  {
    Locked at;
    graph = graphs().find(handle);
  }
  return graph == nullptr ? CUDA_ERROR_INVALID_VALUE : begin(stream, mode, graph);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* out) {
  InStream at(handle);
  SIM_TRY(at.error);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  const std::shared_ptr<Capture> capture = at.stream->capture;
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != at.stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  for (auto& [joined, heads] : capture->heads) joined->capture = nullptr;
  std::erase(at.sim.captures, capture);
  if (capture->invalidated) {
    if (capture->owns_graph) graphs().remove(capture->graph);
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  *out = reinterpret_cast<CUgraph>(capture->graph);
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return info(handle, status, nullptr, nullptr, nullptr, nullptr);
}

CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return info(handle, status, id, nullptr, nullptr, nullptr);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   size_t* count) {
  return info(handle, status, id, graph, dependencies, count);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** edges, size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return info(handle, status, id, graph, dependencies, count);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(thread_state().capture_mode, *mode);
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
