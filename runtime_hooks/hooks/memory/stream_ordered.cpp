// Stream-ordered memory, from the driver's memory pools. On a stream that is being captured, these
// calls make graph nodes instead, which graph_memory.cpp records.
#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/hooks/graphs/graph_memory.hpp"
#include "runtime_hooks/hooks/memory/driver_questions.hpp"
#include "runtime_hooks/serving/pool_memory.hpp"

namespace cuwarden::hooks {
namespace {

// Returns the stream's device, which is also that of the stream's memory pool; no_device if it is
// not known.
DeviceOrdinal of_the_streams(HookedCall& call, CUstream stream) {
  if (!call.recording()) return no_device;
  const MemoryParts parts = call.memory();
  const DeviceOrdinal only = parts.queries.only_device();
  return only != no_device ? only : parts.device_of(stream);
}

// Serves and records a stream-ordered request. `node` is true if the call becomes a graph node.
// `pool` is null if memory comes from the stream's own memory pool.
template <class RealCall>
CUresult allocate(HookedCall& call, CUdeviceptr* dptr, size_t bytes, bool node, CUstream stream,
                  CUmemoryPool pool, const RealCall& real_call) {
  // A memory pool's device need not be the stream's. Served memory tells it more cheaply.
  DeviceOrdinal device = pool == nullptr ? of_the_streams(call, stream) : no_device;
  Allocation made{.kind = Kind::stream_ordered,
                  .bytes = bytes,
                  .device = device,
                  .stream = stream,
                  .memory_pool = pool};
  const auto real_request = [&] {
    const CUresult result = real_call();
    if (result == CUDA_ERROR_OUT_OF_MEMORY && pool != nullptr && made.device == no_device &&
        call.recording())
      made.device = device = call.memory().memory_pools.device_of(call.real(), pool);
    return result;
  };
  using rescue::Accepts;
  // A node takes no memory now, so there is nothing to rescue: its graph may fail when it is
  // launched.
  const auto [result, spilled_at] =
      node ? HookedCall::Allocated{real_call()}
           : call.allocate(made, real_request,
                           dptr != nullptr ? Accepts::any_memory : Accepts::drivers_memory);
  const bool spilled = spilled_at != 0;
  if (spilled) *dptr = spilled_at;
  if (!call.recording()) return result;
  made.address = result == CUDA_SUCCESS ? *dptr : 0;
  // Spilled memory ends with its context; the driver's stream-ordered memory does not.
  made.owned_by_context = spilled;
  if (spilled) device = call.memory().queries.current().device;
  if (device == no_device && made.address != 0)
    device = call.memory().queries.device_of(made.address);
  made.device = device;
  call.memory().memory_pools.used_on(device);
  if (node)
    graph_node_created(call, result, made.address, bytes, device);
  else
    call.allocated(result, made);
  return result;
}

// Waits for the stream in which memory of cuwarden's pool is freed. The free itself waits only for
// the context that owns the memory, and the stream may belong to another context. A stream cannot
// be waited for if it is captured, or is the legacy stream of a context with a captured blocking
// one.
CUresult wait_for_stream(HookedCall& call, CUstream stream) {
  const driver::RealDriver& real = call.real();
  if (real.cuStreamSynchronize == nullptr) return CUDA_SUCCESS;
  const driver::RelaxedCaptures relaxed(real);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (call.recording() && call.memory().captures.any() &&
      (!relaxed || real.cuStreamIsCapturing == nullptr ||
       real.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
       status != CU_STREAM_CAPTURE_STATUS_NONE))
    return CUDA_SUCCESS;
  return real.cuStreamSynchronize(stream);
}

CUresult freed(HookedCall& call, CUdeviceptr dptr, bool node, CUstream stream, auto real_free) {
  if (node) return real_free();  // the memory is freed when the graph runs
  if (serving::is_of_pool(dptr))
    return call.freed(Space::pointer, dptr, [&] {
      const CUresult result = wait_for_stream(call, stream);
      if (result != CUDA_SUCCESS) return result;
      const ContextId used_in = call.recording() ? call.memory().owner_of(stream) : ContextId{};
      return serving::free_of_pool(call.real(), dptr, used_in);
    });
  if (call.recording()) call.memory().freed_in(stream);
  return call.freed(Space::pointer, dptr, real_free);
}

}  // namespace

CUresult cuMemAllocAsync(HookedCall& call, CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  const bool node = is_capturing(call, hStream, call.real().cuStreamIsCapturing);
  return allocate(call, dptr, bytesize, node, hStream, nullptr,
                  [&] { return call.real().cuMemAllocAsync(dptr, bytesize, hStream); });
}

CUresult cuMemAllocAsync_ptsz(HookedCall& call, CUdeviceptr* dptr, size_t bytesize,
                              CUstream hStream) {
  const bool node = is_capturing(call, hStream, call.real().cuStreamIsCapturing_ptsz);
  return allocate(call, dptr, bytesize, node, hStream, nullptr,
                  [&] { return call.real().cuMemAllocAsync_ptsz(dptr, bytesize, hStream); });
}

CUresult cuMemAllocFromPoolAsync(HookedCall& call, CUdeviceptr* dptr, size_t bytesize,
                                 CUmemoryPool pool, CUstream hStream) {
  const bool node = is_capturing(call, hStream, call.real().cuStreamIsCapturing);
  return allocate(call, dptr, bytesize, node, hStream, pool, [&] {
    return call.real().cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream);
  });
}

CUresult cuMemAllocFromPoolAsync_ptsz(HookedCall& call, CUdeviceptr* dptr, size_t bytesize,
                                      CUmemoryPool pool, CUstream hStream) {
  const bool node = is_capturing(call, hStream, call.real().cuStreamIsCapturing_ptsz);
  return allocate(call, dptr, bytesize, node, hStream, pool, [&] {
    return call.real().cuMemAllocFromPoolAsync_ptsz(dptr, bytesize, pool, hStream);
  });
}

CUresult cuMemFreeAsync(HookedCall& call, CUdeviceptr dptr, CUstream hStream) {
  return freed(call, dptr, is_capturing(call, hStream, call.real().cuStreamIsCapturing), hStream,
               [&] { return call.real().cuMemFreeAsync(dptr, hStream); });
}

CUresult cuMemFreeAsync_ptsz(HookedCall& call, CUdeviceptr dptr, CUstream hStream) {
  return freed(call, dptr, is_capturing(call, hStream, call.real().cuStreamIsCapturing_ptsz),
               hStream == nullptr ? CU_STREAM_PER_THREAD : hStream,
               [&] { return call.real().cuMemFreeAsync_ptsz(dptr, hStream); });
}

CUresult cuMemPoolImportPointer(HookedCall& call, CUdeviceptr* ptr_out, CUmemoryPool pool,
                                CUmemPoolPtrExportData* shareData) {
  const CUresult result = call.real().cuMemPoolImportPointer(ptr_out, pool, shareData);
  if (!call.recording() || result != CUDA_SUCCESS) return result;
  call.allocated(result, {.kind = Kind::imported,
                          .address = *ptr_out,
                          .bytes = extent_of(call, *ptr_out),
                          .device = call.memory().queries.device_of(*ptr_out)});
  return result;
}

}  // namespace cuwarden::hooks
