#include "shim/reachability/driver_probes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace cuwarden::shim {

namespace {

// Blocks of 2 MiB and more have records that smaller ones have not (measured).
constexpr std::uint64_t large = std::uint64_t{2} << 20;
// Two blocks of 1 MiB fill a slab, so that half of these begin one. Two of this size leave room in
// it. A driver may keep a further record of a slab with room, as the simulated one does.
constexpr std::uint64_t leaves_room = 960 << 10;
constexpr std::array<std::uint64_t, 10> sizes{4 << 10,  1 << 20, 1 << 20, 1 << 20,   1 << 20,
                                              64 << 10, large,   large,   2 * large, 2 * large};
constexpr std::array<std::uint64_t, 7> few_sizes{4 << 10, 1 << 20, 1 << 20, 64 << 10,
                                                 large,   large,   large};
constexpr std::size_t few = 6;
// Size of managed blocks that begin a range of addresses. The driver keeps further records of the
// first block of a range, be it managed or mapped (measured). These blocks are never touched, so
// that they take no memory.
constexpr std::uint64_t bytes_of_new_range = std::uint64_t{1} << 30;
constexpr std::size_t new_ranges = 2;
// Most blocks that are allocated for one whose address was never freed.
constexpr int most_attempts = 24;
// Blocks of all kinds together, if each needs that many attempts, are fewer.
constexpr std::size_t most_blocks = 2048;

}  // namespace

DriverProbes::DriverProbes(const driver::RealDriver& real, DeviceOrdinal device, unsigned kinds,
                           const tracking::FreedAddresses& freed)
    : real_(real), freed_(freed) {
  // Nothing below needs memory, so that no block of the driver's is left behind without an owner.
  made_.reserve(most_blocks);
  blocks_.reserve(most_blocks);
  mapped_.reserve(few);
  if ((kinds & probe_device) != 0) add_linear();
  if ((kinds & probe_pinned) != 0) add_pinned();
  if ((kinds & probe_managed) != 0) add_managed();
  if ((kinds & (probe_managed | probe_vmm)) != 0) add_new_ranges();
  if ((kinds & probe_stream_ordered) != 0) add_stream_ordered(device);
  if ((kinds & probe_vmm) != 0) add_vmm(device);
  if ((kinds & probe_array) != 0) add_arrays();
}

// A small block that begins a slab of the driver has the slab's records, too.
std::uint8_t DriverProbes::kind_of(ProbeKinds kind, std::uint64_t start, std::uint64_t bytes) {
  const int size = bytes >= large ? 2 : start % large == 0 ? 1 : 0;
  return static_cast<std::uint8_t>(3 * std::countr_zero(unsigned{kind}) + size);
}

bool DriverProbes::add(std::uint64_t start, std::uint64_t bytes, ProbeKinds kind) {
  if (kind != probe_vmm) made_.emplace_back(start, kind);
  if (freed_.may_contain(start)) return false;
  blocks_.push_back(
      {start, bytes, static_cast<std::uint32_t>(blocks_.size()), kind_of(kind, start, bytes)});
  return true;
}

void DriverProbes::add_fresh(std::uint64_t bytes, ProbeKinds kind,
                             FunctionRef<std::uint64_t()> allocate) {
  for (int i = 0; i < most_attempts; ++i) {
    const std::uint64_t start = allocate();
    if (start == 0 || add(start, bytes, kind)) return;
  }
}

void DriverProbes::add_slabs_with_room(ProbeKinds kind, FunctionRef<std::uint64_t()> allocate) {
  const auto begin_slabs = [&](auto has_size) {
    return std::ranges::count_if(blocks_, [&](const reachability::Block& block) {
      return block.kind == kind_of(kind, 0, leaves_room) && has_size(block.bytes);
    });
  };
  const auto full = begin_slabs([](std::uint64_t bytes) { return bytes != leaves_room; });
  for (int i = 0; i < most_attempts; ++i) {
    const auto with_room = begin_slabs([](std::uint64_t bytes) { return bytes == leaves_room; });
    if (with_room >= std::max<std::ptrdiff_t>(full, 1)) return;
    const std::uint64_t start = allocate();
    if (start == 0) return;
    add(start, leaves_room, kind);
  }
}

void DriverProbes::add_linear() {
  if (real_.cuMemAlloc_v2 == nullptr || real_.cuMemFree_v2 == nullptr) return;
  const auto allocate = [&](std::uint64_t bytes) -> std::uint64_t {
    CUdeviceptr block = 0;
    return real_.cuMemAlloc_v2(&block, bytes) == CUDA_SUCCESS ? block : 0;
  };
  for (const std::uint64_t bytes : sizes)
    add_fresh(bytes, probe_device, [&] { return allocate(bytes); });
  add_slabs_with_room(probe_device, [&] { return allocate(leaves_room); });
}

void DriverProbes::add_pinned() {
  if (real_.cuMemHostAlloc == nullptr || real_.cuMemFreeHost == nullptr) return;
  for (const std::uint64_t bytes : few_sizes)
    add_fresh(bytes, probe_pinned, [&]() -> std::uint64_t {
      void* block = nullptr;
      return real_.cuMemHostAlloc(&block, bytes, 0) == CUDA_SUCCESS
                 ? reinterpret_cast<std::uint64_t>(block)
                 : 0;
    });
}

std::uint64_t DriverProbes::allocate_managed(std::uint64_t bytes) const {
  CUdeviceptr block = 0;
  return real_.cuMemAllocManaged != nullptr && real_.cuMemFree_v2 != nullptr &&
                 real_.cuMemAllocManaged(&block, bytes, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS
             ? block
             : 0;
}

void DriverProbes::add_managed() {
  for (const std::uint64_t bytes : few_sizes)
    add_fresh(bytes, probe_managed, [&] { return allocate_managed(bytes); });
  add_slabs_with_room(probe_managed, [&] { return allocate_managed(leaves_room); });
}

void DriverProbes::add_new_ranges() {
  for (std::size_t i = 0; i < new_ranges; ++i)
    add_fresh(bytes_of_new_range, probe_managed,
              [&] { return allocate_managed(bytes_of_new_range); });
}

// The pool is the probes' own. A pool of the program might grow, and goes on counting blocks as
// used that cuMemFree() has freed (measured). A free in stream order would pend.
void DriverProbes::add_stream_ordered(DeviceOrdinal device) {
  if (real_.cuMemPoolCreate == nullptr || real_.cuMemPoolDestroy == nullptr ||
      real_.cuMemAllocFromPoolAsync == nullptr || real_.cuMemFree_v2 == nullptr)
    return;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.value};
  if (real_.cuMemPoolCreate(&pool_, &properties) != CUDA_SUCCESS) {
    pool_ = nullptr;
    return;
  }
  const auto allocate = [&](std::uint64_t bytes) -> std::uint64_t {
    CUdeviceptr block = 0;
    return real_.cuMemAllocFromPoolAsync(&block, bytes, pool_, nullptr) == CUDA_SUCCESS ? block : 0;
  };
  // The driver's records of a memory pool hold the address of the pool's first block.
  if (const std::uint64_t first = allocate(few_sizes.front()); first != 0)
    add(first, few_sizes.front(), probe_stream_ordered);
  for (const std::uint64_t bytes : few_sizes)
    add_fresh(bytes, probe_stream_ordered, [&] { return allocate(bytes); });
}

void DriverProbes::add_vmm(DeviceOrdinal device) {
  if (real_.cuMemCreate == nullptr || real_.cuMemAddressReserve == nullptr ||
      real_.cuMemMap == nullptr || real_.cuMemSetAccess == nullptr || real_.cuMemUnmap == nullptr ||
      real_.cuMemAddressFree == nullptr || real_.cuMemRelease == nullptr)
    return;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.value};
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for (std::size_t i = 0; i < few; ++i) {
    Mapped made{};
    if (real_.cuMemCreate(&made.handle, large, &properties, 0) != CUDA_SUCCESS) return;
    add(made.handle, 1, probe_vmm);
    if (real_.cuMemAddressReserve(&made.address, large, 0, 0, 0) == CUDA_SUCCESS) {
      if (real_.cuMemMap(made.address, large, 0, made.handle, 0) == CUDA_SUCCESS &&
          real_.cuMemSetAccess(made.address, large, &access, 1) == CUDA_SUCCESS)
        add(made.address, large, probe_vmm);
    }
    mapped_.push_back(made);
  }
}

void DriverProbes::add_arrays() {
  if (real_.cuArrayCreate_v2 == nullptr || real_.cuArrayDestroy == nullptr) return;
  for (std::size_t i = 0; i < few; ++i) {
    CUDA_ARRAY_DESCRIPTOR descriptor{};
    descriptor.Width = std::size_t{16} << i;
    descriptor.Height = std::size_t{16} << (i % 2);
    descriptor.Format = CU_AD_FORMAT_FLOAT;
    descriptor.NumChannels = 1;
    add_fresh(1, probe_array, [&]() -> std::uint64_t {
      CUarray array = nullptr;
      return real_.cuArrayCreate_v2(&array, &descriptor) == CUDA_SUCCESS
                 ? reinterpret_cast<std::uint64_t>(array)
                 : 0;
    });
  }
}

DriverProbes::~DriverProbes() {
  for (const auto& [start, kind] : made_) {
    switch (kind) {
      case probe_device:
      case probe_managed:
      case probe_stream_ordered:
        real_.cuMemFree_v2(start);
        break;
      case probe_pinned:
        real_.cuMemFreeHost(reinterpret_cast<void*>(start));
        break;
      case probe_array:
        real_.cuArrayDestroy(reinterpret_cast<CUarray>(start));
        break;
      case probe_vmm:
        break;
    }
  }
  if (pool_ != nullptr) real_.cuMemPoolDestroy(pool_);
  for (const Mapped& made : mapped_) {
    if (made.address != 0) {
      real_.cuMemUnmap(made.address, large);
      real_.cuMemAddressFree(made.address, large);
    }
    real_.cuMemRelease(made.handle);
  }
}

}  // namespace cuwarden::shim
