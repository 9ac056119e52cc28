// Entry points for reservations, mappings and access. Nothing here waits for the device.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "tools/simulated_gpu/device/device_memory.hpp"
#include "tools/simulated_gpu/device/virtual_memory.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

bool aligned(CUdeviceptr value) { return value % kPage == 0; }

// Returns the mappings that make up [start, start + size) exactly; an empty list if they do not.
std::vector<Range*> mappings_of(Simulator& sim, CUdeviceptr start, std::size_t size) {
  std::vector<Range*> found;
  CUdeviceptr next = start;
  while (next < start + size) {
    Range* range = sim.ranges.at(next);
    if (range == nullptr || range->kind != RangeKind::mapping ||
        next + range->requested > start + size)
      return {};
    found.push_back(range);
    next += range->requested;
  }
  return found;
}

// True if the range is part of a reservation and nothing is mapped in it.
bool is_free_reservation(Simulator& sim, CUdeviceptr start, std::size_t size) {
  const auto after = sim.reservations.upper_bound(start);
  if (size == 0 || after == sim.reservations.begin()) return false;
  const auto around = std::prev(after);
  if (start + size > around->first + around->second) return false;
  for (CUdeviceptr at = start; at < start + size; at += kPage)
    if (sim.ranges.at(at) != nullptr) return false;
  return true;
}

bool valid(const Simulator& sim, const CUmemAllocationProp& properties) {
  if (properties.type != CU_MEM_ALLOCATION_TYPE_PINNED) return false;
  const auto type = properties.location.type;
  const VirtualMemory supported = sim.settings.virtual_memory;
  if (supported == VirtualMemory::none ||
      (supported == VirtualMemory::device_only && type != CU_MEM_LOCATION_TYPE_DEVICE))
    return false;
  if (type == CU_MEM_LOCATION_TYPE_DEVICE) {
    return properties.location.id >= 0 &&
           properties.location.id < static_cast<int>(sim.devices.size());
  }
  return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
         type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

std::uint64_t bit_of(const Simulator& sim, const CUmemLocation& location) {
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return kHostBit;
  const bool known = location.id >= 0 && location.id < static_cast<int>(sim.devices.size());
  return known ? std::uint64_t{1} << location.id : 0;
}

// Returns the device of the location; null for the host.
Device* device_of(Simulator& sim, const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? sim.device(location.id) : nullptr;
}

// Charges each device that gets access to host memory for its tables. On failure, undoes what was
// charged and returns false.
bool map_host_for(Simulator& sim, const std::vector<Range*>& mapped, const CUmemAccessDesc* grants,
                  std::size_t count) {
  std::vector<std::pair<Device*, std::size_t>> done;
  for (std::size_t i = 0; i < count; ++i) {
    Device* const device = device_of(sim, grants[i].location);
    if (device == nullptr || grants[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) continue;
    std::size_t bytes = 0;
    for (const Range* range : mapped)
      if (range->physical->device == nullptr &&
          (range->readable & bit_of(sim, grants[i].location)) == 0)
        bytes += range->requested;
    if (!map_host(*device, bytes)) {
      for (const auto& [earlier, taken] : done) unmap_host(*earlier, taken);
      return false;
    }
    done.emplace_back(device, bytes);
  }
  return true;
}

}  // namespace

namespace entry {

CUresult cuMemGetAllocationGranularity(Locked& at, size_t* granularity,
                                       const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  if (granularity == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid(at.sim, *properties)) return CUDA_ERROR_INVALID_VALUE;
  *granularity = kPage;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(Locked& at, CUdeviceptr* out, size_t size, size_t alignment,
                             CUdeviceptr hint, unsigned long long flags) {
  if (out == nullptr || size == 0 || !aligned(size) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t step = std::max(alignment, kPage);
  if (size > (std::size_t{1} << 47) - step) return CUDA_ERROR_OUT_OF_MEMORY;
  void* base = mmap(pointer(hint), size + step, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto start = reinterpret_cast<CUdeviceptr>(base);
  const CUdeviceptr chosen = round_up(start, step);
  if (chosen > start) munmap(base, chosen - start);
  munmap(pointer(chosen + size), start + step - chosen);
  at.sim.reservations.emplace(chosen, size);
  if (std::has_single_bit(at.sim.reservations.size())) {
    at.sim.listed_ranges.clear();
    for (const auto& [begin, bytes] : at.sim.reservations) at.sim.listed_ranges.push_back(begin);
  }
  *out = chosen;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(Locked& at, CUdeviceptr start, size_t size) {
  const auto found = at.sim.reservations.find(start);
  if (found == at.sim.reservations.end() || found->second != size) return CUDA_ERROR_INVALID_VALUE;
  if (at.sim.ranges.overlaps(start, size)) return CUDA_ERROR_INVALID_VALUE;
  at.sim.reservations.erase(found);
  munmap(pointer(start), size);
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(Locked& at, CUmemGenericAllocationHandle* out, size_t size,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  if (out == nullptr || properties == nullptr || flags != 0 || !valid(at.sim, *properties)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (size == 0 || !aligned(size)) return CUDA_ERROR_INVALID_VALUE;
  const auto types = properties->requestedHandleTypes;
  if (types != CU_MEM_HANDLE_TYPE_NONE && types != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  int descriptor = -1;
  if (types == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    descriptor = memfd_create("simulated-gpu-handle", MFD_CLOEXEC);
    if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(size)) != 0) {
      if (descriptor >= 0) close(descriptor);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  PhysicalHandle* made = make_physical(*properties, size, descriptor, false);
  if (made == nullptr) {
    if (descriptor >= 0) close(descriptor);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = reinterpret_cast<CUmemGenericAllocationHandle>(made);
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(Locked&, CUmemGenericAllocationHandle value) {
  PhysicalHandle* handle = physical_handles().find(value);
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (--handle->references > 0) return CUDA_SUCCESS;
  physical_handles().remove(handle);
  drop_physical(*handle);
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(Locked& at, CUmemGenericAllocationHandle* out, void* address) {
  const Range* range = at.sim.ranges.around(reinterpret_cast<CUdeviceptr>(address));
  if (out == nullptr || range == nullptr || range->kind != RangeKind::mapping)
    return CUDA_ERROR_INVALID_VALUE;
  if (range->physical->references++ == 0) physical_handles().revive(range->physical);
  *out = reinterpret_cast<CUmemGenericAllocationHandle>(range->physical);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(Locked&, CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle value) {
  const PhysicalHandle* handle = physical_handles().find(value);
  if (handle == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *properties = handle->properties;
  return CUDA_SUCCESS;
}

CUresult cuMemMap(Locked& at, CUdeviceptr start, size_t size, size_t offset,
                  CUmemGenericAllocationHandle value, unsigned long long flags) {
  PhysicalHandle* handle = physical_handles().find(value);
  if (handle == nullptr || flags != 0 || size == 0 || !aligned(start))
    return CUDA_ERROR_INVALID_VALUE;
  // A handle is mapped whole or not at all.
  if (offset != 0 || size < handle->size) return CUDA_ERROR_NOT_SUPPORTED;
  if (size != handle->size) return CUDA_ERROR_INVALID_VALUE;
  if (!at.sim.reserved(start) || !at.sim.reserved(start + size - 1))
    return CUDA_ERROR_INVALID_VALUE;
  if (at.sim.ranges.overlaps(start, size)) return CUDA_ERROR_INVALID_VALUE;
  const bool is_apart =
      at.sim.settings.virtual_memory == VirtualMemory::apart && handle->mappings != 0;
  void* mapped =
      is_apart ? mmap(pointer(start), size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
               : mremap(handle->window, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(start));
  if (mapped == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  mprotect(mapped, size, PROT_NONE);
  ++handle->mappings;
  Range range;
  range.start = start;
  range.requested = size;
  range.kind = RangeKind::mapping;
  range.device = handle->device;
  range.physical = handle;
  at.sim.ranges.insert(range);
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(Locked& at, CUdeviceptr start, size_t size) {
  const std::vector<Range*> mapped = mappings_of(at.sim, start, size);
  // Unmapping an unmapped part of a reservation succeeds, as measured.
  if (mapped.empty() && !is_free_reservation(at.sim, start, size)) return CUDA_ERROR_INVALID_VALUE;
  for (Range* range : mapped) {
    if (mmap(pointer(range->start), range->requested, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    PhysicalHandle* handle = range->physical;
    for (const auto& device : at.sim.devices)
      if (handle->device == nullptr && (range->readable & std::uint64_t{1} << device->ordinal) != 0)
        unmap_host(*device, range->requested);
    at.sim.ranges.erase(range->start);
    --handle->mappings;
    drop_physical(*handle);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(Locked& at, CUdeviceptr start, size_t size, const CUmemAccessDesc* grants,
                        size_t count) {
  if (grants == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::vector<Range*> mapped = mappings_of(at.sim, start, size);
  if (mapped.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (bit_of(at.sim, grants[i].location) == 0) return CUDA_ERROR_INVALID_DEVICE;
  }
  if (!map_host_for(at.sim, mapped, grants, count)) return CUDA_ERROR_OUT_OF_MEMORY;
  for (Range* range : mapped) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bit = bit_of(at.sim, grants[i].location);
      Device* const device = device_of(at.sim, grants[i].location);
      if (range->physical->device == nullptr && device != nullptr && (range->readable & bit) != 0 &&
          grants[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
        unmap_host(*device, range->requested);
      const auto set = [bit](std::uint64_t& bits, bool on) {
        bits = on ? bits | bit : bits & ~bit;
      };
      set(range->readable, grants[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
      set(range->writable, grants[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
    const int protection =
        (range->readable != 0 ? PROT_READ : 0) | (range->writable != 0 ? PROT_WRITE : 0);
    mprotect(pointer(range->start), range->requested, protection);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(Locked& at, unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address) {
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Range* range = at.sim.ranges.around(address);
  const std::uint64_t bit = bit_of(at.sim, *location);
  if (range == nullptr || range->kind != RangeKind::mapping || bit == 0)
    return CUDA_ERROR_INVALID_VALUE;
  *flags = (range->writable & bit) != 0   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : (range->readable & bit) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                          : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
