// Asks the driver for physical memory of a device, or of the host next to it, and records which
// devices may use another device's memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::pool {

// Bytes of a page: the driver maps device memory in multiples of 2 MiB.
inline constexpr std::uint64_t page_bytes = std::uint64_t{2} << 20;
constexpr std::uint64_t down_to_page(std::uint64_t bytes) { return bytes & ~(page_bytes - 1); }
constexpr std::uint64_t up_to_page(std::uint64_t bytes) {
  return down_to_page(bytes + page_bytes - 1);
}

// Rounds the size of an address reservation up to a multiple of 32 MiB. Any other size makes each
// later cudaMalloc and cudaFree of the driver slower, by half on an H200, for as long as the
// reservation exists (measured).
constexpr std::uint64_t whole_addresses(std::uint64_t bytes) {
  constexpr std::uint64_t unit = std::uint64_t{32} << 20;
  return (bytes + unit - 1) / unit * unit;
}

// True if the driver has all functions that mapping memory takes.
bool can_map(const driver::RealDriver&) noexcept;
// True if the device supports mapping of physical memory, too.
bool maps_virtual_memory(const driver::RealDriver&, DeviceOrdinal) noexcept;
// Returns the properties with which cuMemCreate makes memory on the device.
CUmemAllocationProp on_device(const driver::RealDriver&, DeviceOrdinal) noexcept;
// Returns the properties with which cuMemCreate makes memory on the host's NUMA node next to the
// device; none if the device cannot map host memory.
std::optional<CUmemAllocationProp> on_host_of(const driver::RealDriver&, DeviceOrdinal) noexcept;
// Makes physical memory of `bytes` and maps it at `address`; it is released when it is unmapped.
// Clears the GPUDirect RDMA flag in `where` if the driver refuses memory with it. The caller still
// has to grant access.
CUresult map_new(const driver::RealDriver&, std::uint64_t address, std::uint64_t bytes,
                 CUmemAllocationProp& where) noexcept;

// Records, for each device, the peers that may use its memory. All functions may be called by
// several threads.
class Peers {
 public:
  static constexpr std::size_t most_devices = 64;

  // Returns the peers that may use the device's memory: bit N stands for the device with ordinal N.
  std::uint64_t of(DeviceOrdinal device) const noexcept {
    const auto at = static_cast<std::size_t>(device.value);
    return at < most_devices ? bits_[at].load() : 0;
  }
  // Allows `peer` to use the memory of `device`, or forbids it. Returns false if an ordinal is out
  // of range or both are the same.
  bool set(DeviceOrdinal device, DeviceOrdinal peer, bool may) noexcept;
  // Removes all permissions that the device gave to others or got from them.
  void device_ended(DeviceOrdinal) noexcept;

  // Grants access to a new mapping: to the device itself and to the devices whose bits are set in
  // `peers`.
  static CUresult grant(const driver::RealDriver&, std::uint64_t address, std::uint64_t bytes,
                        DeviceOrdinal device, std::uint64_t peers) noexcept;
  // Grants or withdraws the access of one peer to an existing mapping.
  static CUresult change(const driver::RealDriver&, std::uint64_t address, std::uint64_t bytes,
                         DeviceOrdinal peer, bool may) noexcept;

 private:
  std::array<std::atomic<std::uint64_t>, most_devices> bits_{};
};

}  // namespace cuwarden::pool
