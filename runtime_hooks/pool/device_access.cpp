#include "runtime_hooks/pool/device_access.hpp"

#include <algorithm>

namespace cuwarden::pool {
namespace {

// Returns the device's attribute `which`, or `otherwise` if the driver does not know it.
int attribute(const driver::RealDriver& real, CUdevice_attribute which, DeviceOrdinal device,
              int otherwise) {
  int value = otherwise;
  return real.cuDeviceGetAttribute(&value, which, device.value) == CUDA_SUCCESS ? value : otherwise;
}

// Describes access of a device: read and write if `may` is true, otherwise none.
CUmemAccessDesc access_for(int device, bool may) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = may ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return access;
}

}  // namespace

bool can_map(const driver::RealDriver& real) noexcept {
  return real.cuMemAddressReserve != nullptr && real.cuMemAddressFree != nullptr &&
         real.cuMemCreate != nullptr && real.cuMemRelease != nullptr && real.cuMemMap != nullptr &&
         real.cuMemUnmap != nullptr && real.cuMemSetAccess != nullptr &&
         real.cuMemGetInfo_v2 != nullptr && real.cuDeviceGetAttribute != nullptr;
}

CUmemAllocationProp on_device(const driver::RealDriver& real, DeviceOrdinal device) noexcept {
  CUmemAllocationProp made{};
  made.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  made.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  made.location.id = device.value;
  // The driver makes its own memory capable of GPUDirect RDMA, too.
  made.allocFlags.gpuDirectRDMACapable =
      attribute(real, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device, 0) != 0;
  return made;
}

// The driver may be too old to tell the granularity.
bool maps_virtual_memory(const driver::RealDriver& real, DeviceOrdinal device) noexcept {
  if (!can_map(real) ||
      attribute(real, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device, 0) == 0)
    return false;
  const CUmemAllocationProp where = on_device(real, device);
  std::size_t granularity = page_bytes;
  return real.cuMemGetAllocationGranularity == nullptr ||
         real.cuMemGetAllocationGranularity(&granularity, &where,
                                            CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
         (granularity != 0 && page_bytes % granularity == 0);
}

std::optional<CUmemAllocationProp> on_host_of(const driver::RealDriver& real,
                                              DeviceOrdinal device) noexcept {
#if CUDA_VERSION >= 12020
  if (!maps_virtual_memory(real, device) ||
      attribute(real, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device,
                0) == 0)
    return std::nullopt;
  CUmemAllocationProp made{};
  made.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  made.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  // The driver reports -1 if the system has no NUMA nodes.
  made.location.id = std::max(attribute(real, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device, 0), 0);
  return made;
#else
  static_cast<void>(real), static_cast<void>(device);
  return std::nullopt;
#endif
}

CUresult map_new(const driver::RealDriver& real, std::uint64_t address, std::uint64_t bytes,
                 CUmemAllocationProp& where) noexcept {
  CUmemGenericAllocationHandle handle = 0;
  CUresult made = real.cuMemCreate(&handle, bytes, &where, 0);
  if (made != CUDA_SUCCESS && made != CUDA_ERROR_OUT_OF_MEMORY &&
      where.allocFlags.gpuDirectRDMACapable != 0) {
    where.allocFlags.gpuDirectRDMACapable = 0;
    made = real.cuMemCreate(&handle, bytes, &where, 0);
  }
  if (made != CUDA_SUCCESS) return made;
  const CUresult mapped = real.cuMemMap(address, bytes, 0, handle, 0);
  real.cuMemRelease(handle);
  return mapped;
}

bool Peers::set(DeviceOrdinal device, DeviceOrdinal peer, bool may) noexcept {
  const auto at = static_cast<std::size_t>(device.value),
             bit = static_cast<std::size_t>(peer.value);
  if (at >= most_devices || bit >= most_devices || at == bit) return false;
  if (may)
    bits_[at].fetch_or(std::uint64_t{1} << bit);
  else
    bits_[at].fetch_and(~(std::uint64_t{1} << bit));
  return true;
}

void Peers::device_ended(DeviceOrdinal device) noexcept {
  const auto at = static_cast<std::size_t>(device.value);
  if (at >= most_devices) return;
  bits_[at].store(0);
  for (std::atomic<std::uint64_t>& peers : bits_) peers.fetch_and(~(std::uint64_t{1} << at));
}

CUresult Peers::grant(const driver::RealDriver& real, std::uint64_t address, std::uint64_t bytes,
                      DeviceOrdinal device, std::uint64_t peers) noexcept {
  CUmemAccessDesc access[most_devices + 1];
  std::size_t count = 0;
  access[count++] = access_for(device.value, true);
  for (std::size_t peer = 0; peer < most_devices; ++peer)
    if ((peers >> peer & 1) != 0 && static_cast<int>(peer) != device.value)
      access[count++] = access_for(static_cast<int>(peer), true);
  return real.cuMemSetAccess(address, bytes, access, count);
}

CUresult Peers::change(const driver::RealDriver& real, std::uint64_t address, std::uint64_t bytes,
                       DeviceOrdinal peer, bool may) noexcept {
  const CUmemAccessDesc access = access_for(peer.value, may);
  return real.cuMemSetAccess(address, bytes, &access, 1);
}

}  // namespace cuwarden::pool
