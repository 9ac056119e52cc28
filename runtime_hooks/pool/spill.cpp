#include "runtime_hooks/pool/spill.hpp"

#include <algorithm>

namespace cuwarden::pool {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::uint64_t page_bytes = std::uint64_t{2} << 20;
// Of the device: launches, code and libraries need some that nobody can give them otherwise.
constexpr std::uint64_t left_to_device_bytes = std::uint64_t{64} << 20;
// To map the host's memory the device needs tables of its own: 8 bytes for 4 KiB (measured).
constexpr std::uint64_t host_bytes_of_a_table_byte = 512;
// Up to this the driver hands out parts of pages (measured): a page for each would be a waste, and
// no piece of a slab.
constexpr std::uint64_t largest_shared_bytes = std::uint64_t{1} << 20;
// Of a range's pieces, on the device; each smaller than the last one that was refused.
constexpr std::uint32_t most_device_pieces = Range::most_pieces - 8;

std::uint64_t up_to_page(std::uint64_t bytes) {
  return (bytes + page_bytes - 1) & ~(page_bytes - 1);
}
std::uint64_t down_to_page(std::uint64_t bytes) { return bytes & ~(page_bytes - 1); }

bool has_all(const driver::RealDriver& real) {
  return real.cuMemAddressReserve != nullptr && real.cuMemAddressFree != nullptr &&
         real.cuMemCreate != nullptr && real.cuMemRelease != nullptr && real.cuMemMap != nullptr &&
         real.cuMemUnmap != nullptr && real.cuMemSetAccess != nullptr &&
         real.cuMemGetInfo_v2 != nullptr && real.cuDeviceGetAttribute != nullptr;
}

int attribute(const driver::RealDriver& real, CUdevice_attribute which, int device, int otherwise) {
  int value = otherwise;
  return real.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : otherwise;
}

CUmemAccessDesc access_for(int device, bool may) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = may ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return access;
}

CUmemAllocationProp on_device(const driver::RealDriver& real, int device) {
  CUmemAllocationProp made{};
  made.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  made.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  made.location.id = device;
  // As the driver's own memory is.
  made.allocFlags.gpuDirectRDMACapable =
      attribute(real, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device, 0) != 0;
  return made;
}

// The location of the host's memory next to the device; none: the device cannot map it.
std::optional<CUmemAllocationProp> on_host(const driver::RealDriver& real, int device) {
#if CUDA_VERSION >= 12020
  if (attribute(real, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device, 0) == 0 ||
      attribute(real, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device,
                0) == 0)
    return std::nullopt;
  CUmemAllocationProp made{};
  made.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  made.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  // -1: the system has no such nodes.
  made.location.id = std::max(attribute(real, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device, 0), 0);
  return made;
#else
  static_cast<void>(real), static_cast<void>(device);
  return std::nullopt;
#endif
}

std::uint64_t free_on_device(const driver::RealDriver& real) {
  std::size_t free = 0, total = 0;
  return real.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS ? free : 0;
}

}  // namespace

std::uint64_t Spill::visible_free_bytes(std::uint64_t free) const noexcept {
  const std::uint64_t used = host_bytes_.load(relaxed);
  return free - std::min(free, left_to_device_bytes) + settings_.visible_bytes -
         std::min(used, settings_.visible_bytes);
}

// Of two threads at once, one may be refused that alone would not have been.
bool Spill::reserve_host(std::uint64_t bytes, SpillTrouble& trouble) noexcept {
  std::uint64_t used = host_bytes_.load(relaxed);
  do {
    if (used > settings_.most_host_bytes || bytes > settings_.most_host_bytes - used) {
      trouble = SpillTrouble::cap_reached;
      return false;
    }
  } while (!host_bytes_.compare_exchange_weak(used, used + bytes, relaxed));
  const std::uint64_t coming = coming_bytes_.fetch_add(bytes) + bytes;
  if (settings_.host_room == nullptr || coming <= settings_.host_room()) return true;
  coming_bytes_.fetch_sub(bytes);
  host_bytes_.fetch_sub(bytes, relaxed);
  trouble = SpillTrouble::host_is_full;
  return false;
}

// Physical memory at the end of what the range has; it goes when it is unmapped.
CUresult Spill::add_piece(const driver::RealDriver& real, Range& range,
                          const CUmemAllocationProp& where, std::uint64_t bytes) noexcept {
  if (range.piece_count == Range::most_pieces) return CUDA_ERROR_OUT_OF_MEMORY;
  CUmemGenericAllocationHandle handle = 0;
  const CUresult made = real.cuMemCreate(&handle, bytes, &where, 0);
  if (made != CUDA_SUCCESS) return made;
  const CUresult mapped = real.cuMemMap(range.start + range.mapped_bytes, bytes, 0, handle, 0);
  real.cuMemRelease(handle);
  if (mapped != CUDA_SUCCESS) return mapped;
  range.piece_bytes[range.piece_count++] = bytes;
  range.mapped_bytes += bytes;
  return CUDA_SUCCESS;
}

void Spill::fill_from_device(const driver::RealDriver& real, Range& range,
                             std::uint64_t left) noexcept {
  CUmemAllocationProp device = on_device(real, range.device.value);
  for (std::uint64_t bytes = left; bytes != 0 && range.piece_count < most_device_pieces;) {
    const CUresult added = add_piece(real, range, device, bytes);
    if (added == CUDA_SUCCESS)
      left -= bytes;
    else if (added == CUDA_ERROR_OUT_OF_MEMORY)
      bytes = down_to_page(bytes / 2);
    else if (device.allocFlags.gpuDirectRDMACapable != 0)
      device.allocFlags.gpuDirectRDMACapable = 0;
    else
      return;
    bytes = std::min(bytes, left);
  }
}

CUresult Spill::grant(const driver::RealDriver& real, const Range& range,
                      std::uint64_t peers) noexcept {
  CUmemAccessDesc access[most_devices + 1];
  std::size_t count = 0;
  access[count++] = access_for(range.device.value, true);
  for (std::size_t peer = 0; peer < most_devices; ++peer)
    if ((peers >> peer & 1) != 0 && static_cast<int>(peer) != range.device.value)
      access[count++] = access_for(static_cast<int>(peer), true);
  return real.cuMemSetAccess(range.start, range.mapped_bytes, access, count);
}

// A peer that comes or goes before the range can be found by it is seen afterwards.
bool Spill::insert_and_grant(const driver::RealDriver& real, const Range& range) {
  std::uint64_t peers = peers_of(range.device);
  if (grant(real, range, peers) != CUDA_SUCCESS) return false;
  if (!ranges_.insert(range)) return false;
  const std::uint64_t now = peers_of(range.device);
  for (std::size_t peer = 0; peer < most_devices; ++peer) {
    if (((now ^ peers) >> peer & 1) == 0) continue;
    const CUmemAccessDesc access = access_for(static_cast<int>(peer), (now >> peer & 1) != 0);
    real.cuMemSetAccess(range.start, range.mapped_bytes, &access, 1);
  }
  return true;
}

std::optional<Range> Spill::allocate(const driver::RealDriver& real, DeviceOrdinal device,
                                     ContextId context, std::uint64_t bytes,
                                     SpillTrouble& trouble) {
  const std::uint64_t wanted = up_to_page(bytes);
  const auto refuse = [&](SpillTrouble why) {
    trouble = why;
    return std::nullopt;
  };
  if (bytes <= largest_shared_bytes) return refuse(SpillTrouble::too_small);
  if (wanted < bytes) return refuse(SpillTrouble::cap_reached);
  if (device.value < 0 || !has_all(real)) return refuse(SpillTrouble::not_supported);
  const auto host = on_host(real, device.value);
  if (!host) return refuse(SpillTrouble::not_supported);

  // First what may be refused: the device is not to be taken from others in vain.
  const std::uint64_t free = free_on_device(real);
  if (free >= wanted + left_to_device_bytes) return refuse(SpillTrouble::not_needed);
  const std::uint64_t free_for_pages = free - std::min(free, left_to_device_bytes);
  const std::uint64_t tables =
      down_to_page((wanted - std::min(wanted, free_for_pages)) / host_bytes_of_a_table_byte);
  const std::uint64_t of_device =
      std::min(wanted, down_to_page(free_for_pages - std::min(free_for_pages, tables)));
  std::uint64_t reserved = wanted - of_device;
  if (!reserve_host(reserved, trouble)) return std::nullopt;

  trouble = SpillTrouble::driver_refused;
  Range range{.bytes = bytes, .device = device, .context = context};
  CUdeviceptr start = 0;
  const bool has_addresses = real.cuMemAddressReserve(&start, wanted, 0, 0, 0) == CUDA_SUCCESS;
  range.start = start;
  if (has_addresses) fill_from_device(real, range, of_device);
  // Another process may have been faster.
  const std::uint64_t host_bytes = wanted - range.mapped_bytes;
  bool made = has_addresses;
  if (made && host_bytes > reserved) {
    made = reserve_host(host_bytes - reserved, trouble);
    if (made) reserved = host_bytes;
  }
  made = made && (host_bytes == 0 || add_piece(real, range, *host, host_bytes) == CUDA_SUCCESS);
  range.host_bytes = made ? host_bytes : 0;
  coming_bytes_.fetch_sub(reserved);
  host_bytes_.fetch_sub(reserved - range.host_bytes, relaxed);
  try {
    if (made && insert_and_grant(real, range)) return range;
  } catch (...) {
    undo(real, range, wanted);
    throw;
  }
  if (has_addresses) undo(real, range, wanted);
  return std::nullopt;
}

void Spill::undo(const driver::RealDriver& real, const Range& range,
                 std::uint64_t reserved_bytes) noexcept {
  std::uint64_t at = range.start;
  for (std::uint32_t i = 0; i < range.piece_count; ++i) {
    real.cuMemUnmap(at, range.piece_bytes[i]);
    at += range.piece_bytes[i];
  }
  real.cuMemAddressFree(range.start, reserved_bytes);
  host_bytes_.fetch_sub(range.host_bytes, relaxed);
}

void Spill::give_back(const driver::RealDriver& real, const Range& range) noexcept {
  undo(real, range, range.mapped_bytes);
}

void Spill::put_back(const driver::RealDriver& real, const Range& range) noexcept {
  try {
    insert_and_grant(real, range);
  } catch (...) {
    // No memory to remember it by: it stays mapped until the process ends.
  }
}

void Spill::device_ended(DeviceOrdinal device) noexcept {
  const auto at = static_cast<std::size_t>(device.value);
  if (at >= most_devices) return;
  peers_[at].store(0);
  for (std::atomic<std::uint64_t>& peers : peers_) peers.fetch_and(~(std::uint64_t{1} << at));
}

void Spill::defer(const Range& range) noexcept {
  try {
    deferred_.insert(range);
  } catch (...) {
  }
}

std::optional<Range> Spill::take_deferred(ContextId context) noexcept {
  return deferred_.take_of(context);
}

// The bit is set before the ranges are gone through: insert_and_grant() looks at it again.
CUresult Spill::set_access(const driver::RealDriver& real, DeviceOrdinal device, DeviceOrdinal peer,
                           bool may) noexcept {
  const auto at = static_cast<std::size_t>(device.value),
             bit = static_cast<std::size_t>(peer.value);
  if (at >= most_devices || bit >= most_devices || at == bit) return CUDA_SUCCESS;
  if (may)
    peers_[at].fetch_or(std::uint64_t{1} << bit);
  else
    peers_[at].fetch_and(~(std::uint64_t{1} << bit));
  CUresult result = CUDA_SUCCESS;
  ranges_.each([&](const Range& range) {
    if (range.device != device) return;
    const CUmemAccessDesc access = access_for(peer.value, may);
    const CUresult set = real.cuMemSetAccess(range.start, range.mapped_bytes, &access, 1);
    if (set != CUDA_SUCCESS) result = set;
  });
  return result;
}

}  // namespace cuwarden::pool
