// Entry points for page-locked host memory. It is real memory, present from the start, as pinned
// pages must be. So the kernel enforces a cgroup's limit here, too.
#include <sys/mman.h>

#include <cstdio>
#include <string_view>

#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

constexpr std::size_t kHostPage = 4 * kKiB;

// Returns the bytes that /proc/meminfo gives for `name`; the largest number if it cannot be read.
std::size_t host_memory(std::string_view name) {
  std::FILE* file = std::fopen("/proc/meminfo", "re");
  if (file == nullptr) return ~std::size_t{0};
  std::size_t kib = 0, found = ~std::size_t{0};
  char line[128];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::string_view(line).starts_with(name) &&
        std::sscanf(line + name.size(), ": %zu", &kib) == 1)
      found = kib * kKiB;
  }
  std::fclose(file);
  return found;
}

CUresult allocate(void** out, std::size_t size, unsigned flags) {
  InContext at;
  SIM_TRY(at.error);
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (out == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(refuse_under_capture(at.sim));
  if (size == 0) {
    *out = nullptr;
    return CUDA_SUCCESS;
  }
  if (size > (std::size_t{1} << 46)) return CUDA_ERROR_OUT_OF_MEMORY;
  Range range;
  range.requested = size;
  range.held = round_up(size, kHostPage);
  range.kind = RangeKind::pinned;
  range.flags = flags;
  range.context = at.context;
  const std::size_t limit = at.sim.settings.pinned_limit;
  if (limit != 0 && at.sim.pinned_bytes + range.held > limit) return CUDA_ERROR_OUT_OF_MEMORY;
  // /proc is read only for large requests: reading costs more than a small allocation.
  if (range.held > 16 * kMiB && range.held > host_memory("MemAvailable"))
    return CUDA_ERROR_OUT_OF_MEMORY;
  void* base = mmap(nullptr, range.held, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (base == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  at.sim.pinned_bytes += range.held;
  range.start = reinterpret_cast<CUdeviceptr>(base);
  at.sim.ranges.insert(range);
  *out = base;
  return CUDA_SUCCESS;
}

}  // namespace

namespace entry {

CUresult cuMemAllocHost_v2(void** out, size_t size) {
  return allocate(out, size, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
}

CUresult cuMemAllocHost(void** out, unsigned int size) { return cuMemAllocHost_v2(out, size); }

CUresult cuMemHostAlloc(void** out, size_t size, unsigned int flags) {
  return allocate(out, size, flags);
}

// Works in any context or none, like cuMemFree.
CUresult cuMemFreeHost(void* pointer) {
  InContext at;
  const auto start = reinterpret_cast<CUdeviceptr>(pointer);
  if (at.error != CUDA_ERROR_INVALID_CONTEXT || at.sim.ranges.at(start) == nullptr)
    SIM_TRY(at.error);
  if (pointer == nullptr) return CUDA_SUCCESS;
  SIM_TRY(refuse_under_capture(at.sim));
  const auto is_pinned = [&] {
    const Range* range = at.sim.ranges.at(start);
    return range != nullptr && range->kind == RangeKind::pinned;
  };
  if (!is_pinned()) return CUDA_ERROR_INVALID_VALUE;
  if (at.context != nullptr) wait_in_free(at.lock, *at.context);
  if (!is_pinned()) return CUDA_ERROR_INVALID_VALUE;
  release_range(*at.sim.ranges.at(start));
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(InContext& at, void* pointer, size_t size, unsigned int flags) {
  if (pointer == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(refuse_under_capture(at.sim));
  const auto start = reinterpret_cast<CUdeviceptr>(pointer);
  if (at.sim.ranges.overlaps(start, size)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  const std::size_t limit = at.sim.settings.pinned_limit;
  if (limit != 0 && at.sim.pinned_bytes + size > limit) return CUDA_ERROR_OUT_OF_MEMORY;
  // A part of the range may be in memory already, so free memory is no limit; but all of it must
  // fit.
  if (size > 16 * kMiB && size > host_memory("MemTotal")) return CUDA_ERROR_OUT_OF_MEMORY;
  Range range;
  range.start = start;
  range.requested = size;
  range.held = size;
  range.kind = RangeKind::registered;
  range.flags = flags;
  range.context = at.context;
  at.sim.ranges.insert(range);
  at.sim.pinned_bytes += size;
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(InContext& at, void* pointer) {
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto start = reinterpret_cast<CUdeviceptr>(pointer);
  const auto is_registered = [&] {
    const Range* range = at.sim.ranges.at(start);
    return range != nullptr && range->kind == RangeKind::registered;
  };
  if (!is_registered()) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  wait_for(at.lock, *at.context);
  if (!is_registered()) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  release_range(*at.sim.ranges.at(start));
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(InContext& at, CUdeviceptr* out, void* pointer,
                                      unsigned int flags) {
  if (out == nullptr || pointer == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  const Range* range = at.sim.ranges.around(address);
  if (range == nullptr ||
      (range->kind != RangeKind::pinned && range->kind != RangeKind::registered)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = address;
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer(InContext& at, CUdeviceptr_v1* out, void* pointer,
                                   unsigned int flags) {
  CUdeviceptr address = 0;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(cuMemHostGetDevicePointer_v2(at, &address, pointer, flags));
  if (address > 0xffffffffULL) return CUDA_ERROR_INVALID_VALUE;
  *out = static_cast<CUdeviceptr_v1>(address);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(InContext& at, unsigned int* flags, void* pointer) {
  if (flags == nullptr || pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Range* range = at.sim.ranges.around(reinterpret_cast<CUdeviceptr>(pointer));
  if (range == nullptr || range->kind != RangeKind::pinned) return CUDA_ERROR_INVALID_VALUE;
  *flags = range->flags;
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
