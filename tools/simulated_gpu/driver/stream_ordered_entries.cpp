// Entry points for allocation in stream order.
#include "tools/simulated_gpu/device/graphs.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

CUresult capture_allocation(Stream& stream, Device& device, CUdeviceptr* out, std::size_t size) {
  if (stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Node* node = capture_node(stream, NodeKind::allocate, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  node->allocation.bytesize = size;
  node->allocation.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  node->allocation.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.ordinal};
  SIM_TRY(reserve_graph_memory(*node));
  *out = node->allocation.dptr;
  return CUDA_SUCCESS;
}

CUresult allocate(InContext& at, CUdeviceptr* out, std::size_t size, MemoryPool& pool,
                  Stream& stream) {
  if (stream.capture) return capture_allocation(stream, *pool.device, out, size);
  SIM_TRY(refuse_under_capture(at.sim));
  if (size == 0) {
    *out = 0;
    return CUDA_SUCCESS;
  }
  if (size > pool.device->capacity) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!pool.device->arena.prepare()) return CUDA_ERROR_OUT_OF_MEMORY;
  Range range;
  range.start = pool.take(size, &stream);
  if (range.start == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  range.requested = size;
  range.kind = RangeKind::stream_ordered;
  range.device = pool.device;
  range.pool = &pool;
  at.sim.ranges.insert(range);
  *out = range.start;
  return CUDA_SUCCESS;
}

}  // namespace

namespace entry {

CUresult cuMemAllocAsync(InContext& at, CUdeviceptr* out, size_t size, CUstream handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(*at.context, handle, stream));
  return allocate(at, out, size, *stream->context->device->current_pool, *stream);
}

CUresult cuMemAllocFromPoolAsync(InContext& at, CUdeviceptr* out, size_t size, CUmemoryPool handle,
                                 CUstream stream_handle) {
  MemoryPool* pool = at.sim.pools.find(handle);
  if (out == nullptr || pool == nullptr || pool->imported) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(*at.context, stream_handle, stream));
  return allocate(at, out, size, *pool, *stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  InStream at(handle);
  SIM_TRY(at.error);
  if (address == 0) return CUDA_SUCCESS;
  if (at.stream->capture) {
    if (at.stream->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    capture_node(*at.stream, NodeKind::release, CU_GRAPH_NODE_TYPE_MEM_FREE)->freed = address;
    return CUDA_SUCCESS;
  }
  Range* range = at.sim.ranges.at(address);
  if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  enqueue(*at.stream, Clock::duration::zero());
  at.stream->last_free = at.stream->busy_until;
  switch (range->kind) {
    case RangeKind::stream_ordered: {
      MemoryPool* pool = range->pool;
      at.sim.ranges.erase(address);
      pool->give_pending(address, at.stream);
      return CUDA_SUCCESS;
    }
    case RangeKind::device:
      at.stream->context->deferred.push_back({*range, at.stream});
      at.sim.ranges.erase(address);
      return CUDA_SUCCESS;
    case RangeKind::graph:
      release_graph_memory(at.sim, *range);
      return CUDA_SUCCESS;
    case RangeKind::imported:
      if ((range->flags & kImportedFreeable) == 0) return CUDA_ERROR_INVALID_VALUE;
      release_range(*range);
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
