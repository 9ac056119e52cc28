// Memory from the driver's pools, in stream order. On a stream under capture these calls make
// graph nodes instead of memory: those belong to graphs.cpp.
#include "runtime_hooks/families/bodies.hpp"
#include "runtime_hooks/families/graph_memory.hpp"
#include "runtime_hooks/families/pool_memory.hpp"
#include "runtime_hooks/families/queries.hpp"

namespace cuwarden::families {
namespace {

// `device`: where the caller knows it.
void allocated(HookedCall& call, CUresult result, CUdeviceptr* dptr, size_t bytes, bool node,
               DeviceOrdinal device = no_device) {
  if (!call.recording()) return;
  const CUdeviceptr address = result == CUDA_SUCCESS ? *dptr : 0;
  // A null pointer has no device of its own: a refused request counts for the current one.
  if (device == no_device && address != 0) device = call.recorder().device_of(address);
  call.recorder().pools().used_on(device);
  if (node)
    graph_node_created(call, result, address, device);
  else
    call.allocated(
        result,
        {.kind = Kind::stream_ordered, .address = address, .bytes = bytes, .device = device});
}

// What a stream's own pool gives lies on the stream's device.
DeviceOrdinal of_the_streams(HookedCall& call) {
  return call.recording() ? call.recorder().only_device() : no_device;
}

// A node's memory is a graph's: it lacks when that runs.
CUresult allocate(HookedCall& call, size_t bytes, bool node, auto real_call) {
  return node ? real_call()
              : call.allocate({.kind = Kind::stream_ordered, .bytes = bytes}, real_call);
}

// The free itself waits for the context that has the memory, and the stream may be another one's.
CUresult wait_for_stream(HookedCall& call, CUstream stream) {
  if (call.real().cuStreamSynchronize == nullptr ||
      (call.recording() && call.recorder().captures().any()))
    return CUDA_SUCCESS;
  return call.real().cuStreamSynchronize(stream);
}

CUresult freed(HookedCall& call, CUdeviceptr dptr, bool node, CUstream stream, auto real_free) {
  if (node) return real_free();  // the memory goes when the graph runs
  if (is_of_pool(dptr))
    return call.freed(Space::pointer, dptr, [&] {
      const CUresult result = wait_for_stream(call, stream);
      return result == CUDA_SUCCESS ? free_of_pool(call.real(), dptr) : result;
    });
  if (call.recording()) call.recorder().freed_in(stream);
  return call.freed(Space::pointer, dptr, real_free);
}

}  // namespace

CUresult cuMemAllocAsync(HookedCall& call, CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  const bool node = is_capturing(call, hStream, call.real().cuStreamIsCapturing);
  const CUresult result = allocate(
      call, bytesize, node, [&] { return call.real().cuMemAllocAsync(dptr, bytesize, hStream); });
  allocated(call, result, dptr, bytesize, node, of_the_streams(call));
  return result;
}

CUresult cuMemAllocAsync_ptsz(HookedCall& call, CUdeviceptr* dptr, size_t bytesize,
                              CUstream hStream) {
  const bool node = is_capturing(call, hStream, call.real().cuStreamIsCapturing_ptsz);
  const CUresult result = allocate(call, bytesize, node, [&] {
    return call.real().cuMemAllocAsync_ptsz(dptr, bytesize, hStream);
  });
  allocated(call, result, dptr, bytesize, node, of_the_streams(call));
  return result;
}

CUresult cuMemAllocFromPoolAsync(HookedCall& call, CUdeviceptr* dptr, size_t bytesize,
                                 CUmemoryPool pool, CUstream hStream) {
  const bool node = is_capturing(call, hStream, call.real().cuStreamIsCapturing);
  const CUresult result = allocate(call, bytesize, node, [&] {
    return call.real().cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream);
  });
  allocated(call, result, dptr, bytesize, node);
  return result;
}

CUresult cuMemAllocFromPoolAsync_ptsz(HookedCall& call, CUdeviceptr* dptr, size_t bytesize,
                                      CUmemoryPool pool, CUstream hStream) {
  const bool node = is_capturing(call, hStream, call.real().cuStreamIsCapturing_ptsz);
  const CUresult result = allocate(call, bytesize, node, [&] {
    return call.real().cuMemAllocFromPoolAsync_ptsz(dptr, bytesize, pool, hStream);
  });
  allocated(call, result, dptr, bytesize, node);
  return result;
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
                          .device = call.recorder().device_of(*ptr_out)});
  return result;
}

}  // namespace cuwarden::families
