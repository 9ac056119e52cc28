// Asks the driver for physical memory of a device, or of the host next to it, and records which
// devices may use another device's memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/pool/packing/pages.hpp"

namespace cuwarden::pool {

// Returns `bytes`, rounded up to a multiple of 32 MiB: the size with which addresses are reserved.
// While a reservation exists whose size is not such a multiple, each cudaMalloc and cudaFree of the
// driver is much slower (measured on an H200).
constexpr std::uint64_t whole_addresses(std::uint64_t bytes) {
  constexpr std::uint64_t unit = std::uint64_t{32} << 20;
  return (bytes + unit - 1) / unit * unit;
}

// True if the driver has all functions that are needed for memory at reserved addresses
// (cuMemCreate, cuMemMap and others).
bool can_map(const driver::RealDriver&) noexcept;
// True if can_map() is true and the device supports memory at reserved addresses (attribute
// VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) in pages of page_bytes. If the driver does not tell the
// granularity of such memory, page_bytes counts as supported.
bool maps_virtual_memory(const driver::RealDriver&, DeviceOrdinal) noexcept;
// Returns the properties with which cuMemCreate makes memory on the device. can_map() must be true.
// Asks for GPUDirect RDMA if the device can do it, as the driver does for its own memory.
CUmemAllocationProp on_device(const driver::RealDriver&, DeviceOrdinal) noexcept;
// Returns the properties with which cuMemCreate makes memory on the host's NUMA node next to the
// device (node 0 if the driver names none). Returns none if the device cannot map host memory, or
// if cuwarden was built with a CUDA before 12.2.
std::optional<CUmemAllocationProp> on_host_of(const driver::RealDriver&, DeviceOrdinal) noexcept;
// Makes `bytes` of physical memory with the properties `where` and maps them at `address`, which
// the caller has reserved. `bytes` and `address` are multiples of page_bytes. Unmapping frees the
// memory. If the driver refuses memory with GPUDirect RDMA, for a reason other than a lack of
// memory, clears that flag in `where` and asks again. The memory can be used once the caller has
// granted access (Peers::grant()). can_map() must be true. Returns the driver's result; if that is
// an error, nothing is mapped.
CUresult map_new(const driver::RealDriver&, std::uint64_t address, std::uint64_t bytes,
                 CUmemAllocationProp& where) noexcept;

// Records for each device its peers: the other devices that may use its memory. All functions may
// be called by several threads at once.
class Peers {
 public:
  // Number of devices whose peers can be recorded: those with the ordinals 0 to 63.
  static constexpr std::size_t most_devices = 64;

  // Returns the peers that may use the device's memory: bit N stands for the device with ordinal N.
  // Returns 0 if the device's ordinal is above 63 or negative.
  std::uint64_t of(DeviceOrdinal device) const noexcept {
    const auto at = static_cast<std::size_t>(device.value);
    return at < most_devices ? bits_[at].load() : 0;
  }
  // Records that `peer` may use the memory of `device`, or may not (`may` false). Access to memory
  // that is mapped already does not change. Returns false, with nothing recorded, if an ordinal is
  // not from 0 to 63 or both are the same.
  bool set(DeviceOrdinal device, DeviceOrdinal peer, bool may) noexcept;
  // Removes all records that the device may use other devices' memory, and that other devices may
  // use the device's memory.
  void device_ended(DeviceOrdinal) noexcept;

  // Lets `device` and its `peers` (bit N stands for the device with ordinal N) read and write the
  // `bytes` of memory that were newly mapped at `address`. can_map() must be true. Returns the
  // driver's result.
  static CUresult grant(const driver::RealDriver&, std::uint64_t address, std::uint64_t bytes,
                        DeviceOrdinal device, std::uint64_t peers) noexcept;
  // Lets `peer` read and write the `bytes` of memory that are mapped at `address`, or forbids it
  // (`may` false). The access of other devices stays. can_map() must be true. Returns the driver's
  // result.
  static CUresult change(const driver::RealDriver&, std::uint64_t address, std::uint64_t bytes,
                         DeviceOrdinal peer, bool may) noexcept;

 private:
  // By device ordinal: the peers that may use the device's memory. Bit N stands for the device with
  // ordinal N.
  std::array<std::atomic<std::uint64_t>, most_devices> bits_{};
};

}  // namespace cuwarden::pool
