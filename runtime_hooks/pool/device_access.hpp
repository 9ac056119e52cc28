// Physical memory of a device or of the host next to it, as the pool asks the driver for it, and
// the devices that may use what lies on another one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::pool {

inline constexpr std::uint64_t page_bytes = std::uint64_t{2} << 20;
constexpr std::uint64_t down_to_page(std::uint64_t bytes) { return bytes & ~(page_bytes - 1); }
constexpr std::uint64_t up_to_page(std::uint64_t bytes) {
  return down_to_page(bytes + page_bytes - 1);
}

// For reservations: one whose size is no multiple of 32 MiB makes each later cudaMalloc and
// cudaFree of the driver's slower, by half on an H200, for as long as it is there (measured).
constexpr std::uint64_t whole_addresses(std::uint64_t bytes) {
  constexpr std::uint64_t unit = std::uint64_t{32} << 20;
  return (bytes + unit - 1) / unit * unit;
}

// The driver has all that mapping memory takes.
bool can_map(const driver::RealDriver&) noexcept;
bool maps_virtual_memory(const driver::RealDriver&, DeviceOrdinal) noexcept;
CUmemAllocationProp on_device(const driver::RealDriver&, DeviceOrdinal) noexcept;
// None: the device cannot map the host's memory.
std::optional<CUmemAllocationProp> on_host_of(const driver::RealDriver&, DeviceOrdinal) noexcept;
// Makes memory and maps it; it goes when it is unmapped. In memory of a device GPUDirect's flag is
// cleared where it is refused.
CUresult map_new(const driver::RealDriver&, std::uint64_t address, std::uint64_t bytes,
                 CUmemAllocationProp& where) noexcept;

// The peers that may use a device's memory.
class Peers {
 public:
  static constexpr std::size_t most_devices = 64;

  std::uint64_t of(DeviceOrdinal device) const noexcept {
    const auto at = static_cast<std::size_t>(device.value);
    return at < most_devices ? bits_[at].load() : 0;
  }
  // False: there is nothing to be changed.
  bool set(DeviceOrdinal device, DeviceOrdinal peer, bool may) noexcept;
  // What it allowed and what it was allowed.
  void device_ended(DeviceOrdinal) noexcept;

  // For a new mapping: the device itself and, of `peers`, the others.
  static CUresult grant(const driver::RealDriver&, std::uint64_t address, std::uint64_t bytes,
                        DeviceOrdinal device, std::uint64_t peers) noexcept;
  static CUresult change(const driver::RealDriver&, std::uint64_t address, std::uint64_t bytes,
                         DeviceOrdinal peer, bool may) noexcept;

 private:
  std::array<std::atomic<std::uint64_t>, most_devices> bits_{};
};

}  // namespace cuwarden::pool
