// Entry points for linear device memory: allocation, free, and queries of an address.
#include <sys/mman.h>

#include <algorithm>

#include "tools/simulated_gpu/device/graphs.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

constexpr std::size_t kPitchAlignment = 512;

CUresult allocate(CUdeviceptr* out, std::size_t size) {
  InContext at;
  SIM_TRY(at.error);
  if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(refuse_under_capture(at.sim));
  wait_for_frees(at.lock, *at.context);
  Range range;
  range.requested = size;
  range.context = at.context;
  range.device = at.context->device;
  range.start = take_linear(*at.context, size, range.in_slab, range.held);
  if (range.start == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  at.sim.ranges.insert(range);
  *out = range.start;
  return CUDA_SUCCESS;
}

// Gives the address to a function from before CUDA 3.2, which returns 32-bit addresses. Memory here
// lies above 4 GiB, so the memory is freed and the function answers OUT_OF_MEMORY.
CUresult narrow(CUdeviceptr_v1* out, CUresult result, CUdeviceptr address) {
  if (result != CUDA_SUCCESS) return result;
  if (address > 0xffffffffULL) {
    entry::cuMemFree_v2(address);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = static_cast<CUdeviceptr_v1>(address);
  return CUDA_SUCCESS;
}

}  // namespace

namespace entry {

CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t size) { return allocate(out, size); }

CUresult cuMemAlloc(CUdeviceptr_v1* out, unsigned int size) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr address = 0;
  const CUresult result = cuMemAlloc_v2(&address, size);
  return narrow(out, result, address);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                            unsigned int element) {
  if (out == nullptr || pitch == nullptr || width == 0 || height == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  std::size_t size = 0;
  const std::size_t row =
      width > ~std::size_t{0} - kPitchAlignment ? width : round_up(width, kPitchAlignment);
  if (__builtin_mul_overflow(row, height, &size)) return CUDA_ERROR_OUT_OF_MEMORY;
  SIM_TRY(allocate(out, size));
  *pitch = row;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch(CUdeviceptr_v1* out, unsigned int* pitch, unsigned int width,
                         unsigned int height, unsigned int element) {
  if (out == nullptr || pitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr address = 0;
  size_t row = 0;
  const CUresult result = cuMemAllocPitch_v2(&address, &row, width, height, element);
  *pitch = static_cast<unsigned>(row);
  return narrow(out, result, address);
}

CUresult cuMemAllocManaged(InContext& at, CUdeviceptr* out, size_t size, unsigned int flags) {
  if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(refuse_under_capture(at.sim));
  if (size > (std::size_t{1} << 46)) return CUDA_ERROR_OUT_OF_MEMORY;
  Range range;
  range.requested = size;
  range.held = round_up(size, 4 * kKiB);
  range.kind = RangeKind::managed;
  range.flags = flags;
  range.context = at.context;
  range.device = at.context->device;
  void* base = mmap(nullptr, range.held, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  range.start = reinterpret_cast<CUdeviceptr>(base);
  at.sim.ranges.insert(range);
  *out = range.start;
  return CUDA_SUCCESS;
}

// The thread may be in any context, or in none (measured).
CUresult cuMemFree_v2(CUdeviceptr address) {
  InContext at;
  if (at.error != CUDA_ERROR_INVALID_CONTEXT || at.sim.ranges.at(address) == nullptr)
    SIM_TRY(at.error);
  if (address == 0) return CUDA_SUCCESS;
  SIM_TRY(refuse_under_capture(at.sim));
  const auto freeable = [&]() -> Range* {
    Range* range = at.sim.ranges.at(address);
    if (range == nullptr) return nullptr;
    const bool mine =
        range->kind == RangeKind::device || range->kind == RangeKind::stream_ordered ||
        range->kind == RangeKind::managed || range->kind == RangeKind::graph ||
        (range->kind == RangeKind::imported && (range->flags & kImportedFreeable) != 0);
    return mine ? range : nullptr;
  };
  Range* range = freeable();
  if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // The free waits for the whole device, whichever context allocated the memory.
  Context* owner =
      range->context != nullptr && !range->context->destroyed ? range->context : at.context;
  if (owner != nullptr) wait_in_free(at.lock, *owner);
  range = freeable();
  if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (range->kind == RangeKind::graph) {
    release_graph_memory(at.sim, *range);
    return CUDA_SUCCESS;
  }
  MemoryPool* pool = range->pool;
  const std::size_t used = pool != nullptr ? pool->used : 0;
  release_range(*range);
  if (pool != nullptr) {
    pool->freed_otherwise += used - pool->used;
    pool->trim(pool->release_threshold);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr_v1 address) { return cuMemFree_v2(address); }

CUresult cuMemGetInfo_v2(InContext& at, size_t* free, size_t* total) {
  // A limit of the cgroup is shown as the device's size.
  const Device& device = *at.context->device;
  const std::size_t limit = device.cgroup_limit;
  if (free != nullptr) *free = std::min(device.free_bytes(), limit - std::min(device.used, limit));
  if (total != nullptr) *total = std::min(device.capacity, limit);
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(InContext& at, unsigned int* free, unsigned int* total) {
  size_t wide_free = 0, wide_total = 0;
  SIM_TRY(cuMemGetInfo_v2(at, &wide_free, &wide_total));
  constexpr std::size_t kMost = 0xffffffff;
  if (free != nullptr) *free = static_cast<unsigned>(std::min(wide_free, kMost));
  if (total != nullptr) *total = static_cast<unsigned>(std::min(wide_total, kMost));
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(InContext& at, CUdeviceptr* base, size_t* size,
                                 CUdeviceptr address) {
  const Range* range = at.sim.ranges.around(address);
  if (range == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = range->start;
  if (size != nullptr) *size = range->requested;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(InContext& at, CUdeviceptr_v1* base, unsigned int* size,
                              CUdeviceptr_v1 address) {
  CUdeviceptr wide_base = 0;
  size_t wide_size = 0;
  SIM_TRY(cuMemGetAddressRange_v2(at, &wide_base, &wide_size, address));
  if (base != nullptr) *base = static_cast<CUdeviceptr_v1>(wide_base);
  if (size != nullptr) *size = static_cast<unsigned>(wide_size);
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
