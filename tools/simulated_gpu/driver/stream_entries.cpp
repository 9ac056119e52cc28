// Entry points for streams, events, and host functions in a stream.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "tools/simulated_gpu/device/work.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

CUresult find_event(Simulator& sim, CUevent handle, Event*& event) {
  event = sim.events.find(handle);
  return event != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// Refuses to tell if the stream is idle, or to wait for that, if a capture forbids it.
CUresult refuse_question(Simulator& sim, const Stream& stream) {
  if (stream.capture) {
    stream.capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (invalidate_implicit_captures(stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  return refuse_under_capture(sim);
}

// Runs the function when the stream reaches it: on a thread of the driver, without the lock, one
// after the other. The stream is busy until the function returns.
void call_host(Stream& stream, std::function<void()> function) {
  const unsigned long long turn = stream.callbacks_queued++;
  ++stream.running_callbacks;
  const auto start = stream.busy_until;
  std::thread([&stream, function = std::move(function), start, turn] {
    Simulator& sim = simulator();
    std::unique_lock lock(sim.mutex);
    sim.callbacks_done.wait(lock, [&] { return stream.callbacks_finished == turn; });
    sleep_until(lock, start);
    lock.unlock();
    function();
    lock.lock();
    ++stream.callbacks_finished;
    --stream.running_callbacks;
    sim.callbacks_done.notify_all();
  }).detach();
}

}  // namespace

namespace entry {

CUresult cuStreamCreateWithPriority(InContext& at, CUstream* out, unsigned int flags,
                                    int priority) {
  if (out == nullptr || (flags & ~1u) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!take_object_memory(*at.context, at.context->stream_memory, kStreamCost))
    return CUDA_ERROR_OUT_OF_MEMORY;
  Stream* stream = at.sim.streams.add(make_stream(*at.context, flags, std::clamp(priority, -5, 0)));
  at.context->streams.insert(stream);
  *out = reinterpret_cast<CUstream>(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(InContext& at, CUstream* out, unsigned int flags) {
  return entry::cuStreamCreateWithPriority(at, out, flags, 0);
}

CUresult cuStreamDestroy_v2(Locked& at, CUstream handle) {
  Stream* stream = at.sim.streams.find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context& context = *stream->context;
  // The stream's frees count as reached now, because nothing else can wait for them.
  observe_frees(*stream);
  context.legacy.busy_until = std::max(context.legacy.busy_until, stream->busy_until);
  stream->destroyed = true;
  at.sim.streams.remove(stream);
  context.streams.erase(stream);
  context.stream_memory.used_bytes -= kStreamCost;
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle) {
  InStream at(handle);
  SIM_TRY(at.error);
  SIM_TRY(refuse_question(at.sim, *at.stream));
  wait_for(at.lock, *at.stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream handle) {
  InStream at(handle);
  SIM_TRY(at.error);
  SIM_TRY(refuse_question(at.sim, *at.stream));
  return idle(*at.stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  InStream at(handle);
  SIM_TRY(at.error);
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *priority = at.stream->priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  InStream at(handle);
  SIM_TRY(at.error);
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = at.stream->flags;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  InStream at(handle);
  SIM_TRY(at.error);
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = at.stream->id;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* out) {
  InStream at(handle);
  SIM_TRY(at.error);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUcontext>(at.stream->context);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
  InStream at(handle);
  SIM_TRY(at.error);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = at.stream->context->device->ordinal;
  return CUDA_SUCCESS;
}

CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t, unsigned int) {
  InStream at(handle);
  SIM_TRY(at.error);
  const Range* range = at.sim.ranges.around(address);
  return range != nullptr && range->kind == RangeKind::managed ? CUDA_SUCCESS
                                                               : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchHostFunc(InContext& at, CUstream handle, CUhostFn function, void* data) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(*at.context, handle, stream));
  if (stream->capture) {
    Node* node = capture_node(*stream, NodeKind::host, CU_GRAPH_NODE_TYPE_HOST);
    node->work = [function, data](Stream& s) {
      call_host(s, [function, data] { function(data); });
    };
    return CUDA_SUCCESS;
  }
  enqueue(*stream, Clock::duration::zero());
  call_host(*stream, [function, data] { function(data); });
  return CUDA_SUCCESS;
}

CUresult cuStreamAddCallback(InContext& at, CUstream handle, CUstreamCallback function, void* data,
                             unsigned int flags) {
  if (function == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(*at.context, handle, stream));
  if (stream->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  enqueue(*stream, Clock::duration::zero());
  call_host(*stream, [=] { function(handle, CUDA_SUCCESS, data); });
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(InContext& at, CUevent* out, unsigned int flags) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto event = std::make_unique<Event>();
  event->context = at.context;
  event->flags = flags;
  *out = reinterpret_cast<CUevent>(at.sim.events.add(std::move(event)));
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(Locked& at, CUevent handle) {
  Event* event = nullptr;
  SIM_TRY(find_event(at.sim, handle, event));
  at.sim.events.remove(event);
  return CUDA_SUCCESS;
}

// The handle names the event and the process. No process can open it yet.
CUresult cuIpcGetEventHandle(Locked& at, CUipcEventHandle* out, CUevent handle) {
  Event* event = nullptr;
  SIM_TRY(find_event(at.sim, handle, event));
  if (out == nullptr || (event->flags & CU_EVENT_INTERPROCESS) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto number = reinterpret_cast<std::uint64_t>(event);
  const pid_t process = getpid();
  *out = {};
  std::memcpy(out->reserved, &number, sizeof number);
  std::memcpy(out->reserved + sizeof number, &process, sizeof process);
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(InContext& at, CUevent handle, CUstream stream_handle) {
  Event* event = nullptr;
  Stream* stream = nullptr;
  SIM_TRY(find_event(at.sim, handle, event));
  SIM_TRY(find_stream(*at.context, stream_handle, stream));
  if (invalidate_implicit_captures(*stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  event->stream = stream;
  event->captured = stream->capture;
  if (stream->capture) {
    const auto& heads = stream->capture->heads[stream];
    event->captured_nodes.assign(heads.begin(), heads.end());
    return CUDA_SUCCESS;
  }
  enqueue(*stream, Clock::duration::zero());
  event->recorded = true;
  event->at = stream->busy_until;
  return CUDA_SUCCESS;
}

// Records the event behind all streams of the context.
CUresult cuCtxRecordEvent(Locked& at, CUcontext handle, CUevent event_handle) {
  Event* event = nullptr;
  Context* const context = at.sim.contexts.find(handle);
  SIM_TRY(find_event(at.sim, event_handle, event));
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (event->context != context) return CUDA_ERROR_INVALID_HANDLE;
  if (invalidate_captures(*context)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  event->stream = nullptr;  // The event makes no stream's frees noticed (measured).
  event->captured.reset();
  event->recorded = true;
  event->at = std::max(busy_until(*context), Clock::now());
  return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(InContext& at, CUevent event, CUstream stream, unsigned int) {
  return entry::cuEventRecord(at, event, stream);
}

CUresult cuEventQuery(Locked& at, CUevent handle) {
  Event* event = nullptr;
  SIM_TRY(find_event(at.sim, handle, event));
  SIM_TRY(refuse_under_capture(at.sim));
  return !event->recorded || event->at <= Clock::now() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(Locked& at, CUevent handle) {
  Event* event = nullptr;
  SIM_TRY(find_event(at.sim, handle, event));
  SIM_TRY(refuse_under_capture(at.sim));
  if (!event->recorded) return CUDA_SUCCESS;
  Stream* const stream = event->stream;
  const bool waits = event->at > Clock::now();
  sleep_until(at.lock, event->at);
  if (stream == nullptr || stream->destroyed || stream->context->destroyed) return CUDA_SUCCESS;
  // Frees before the event are noticed whatever work follows it.
  if (idle(*stream) || stream->last_free <= event->at) observe_frees(*stream);
  // If the event had come already, only frees of its own stream are noticed (measured).
  if (waits && stream == &stream->context->legacy)
    observe_frees_before(*stream->context, event->at);
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(Locked& at, float* milliseconds, CUevent from, CUevent to) {
  Event* first = nullptr;
  Event* second = nullptr;
  SIM_TRY(find_event(at.sim, from, first));
  SIM_TRY(find_event(at.sim, to, second));
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!first->recorded || !second->recorded) return CUDA_ERROR_INVALID_HANDLE;
  if (std::max(first->at, second->at) > Clock::now()) return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(second->at - first->at).count();
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(InContext& at, CUstream handle, CUevent event_handle, unsigned int) {
  Event* event = nullptr;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(*at.context, handle, stream));
  SIM_TRY(find_event(at.sim, event_handle, event));
  if (const auto capture = event->captured.lock()) {  // The stream joins the capture.
    if (stream->capture && stream->capture != capture) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    stream->capture = capture;
    auto& heads = capture->heads[stream];
    for (void* node : event->captured_nodes) {
      if (std::find(heads.begin(), heads.end(), node) == heads.end())
        heads.push_back(static_cast<Node*>(node));
    }
    return CUDA_SUCCESS;
  }
  if (event->recorded) stream->busy_until = std::max(stream->busy_until, event->at);
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
