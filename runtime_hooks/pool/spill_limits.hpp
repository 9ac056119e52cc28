// Limits of spilling: the memory that it may take, and the memory that it leaves free.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime_hooks/core/host_process.hpp"

namespace cuwarden::pool {

// Device memory that spilling leaves free: launches, code and libraries need some, and no rescue
// can give them any.
inline constexpr std::uint64_t left_to_device_bytes = std::uint64_t{64} << 20;
// Host memory that spilling leaves free. Page-locked memory cannot be swapped out, so if none is
// left, the kernel kills this process or another one.
inline constexpr std::uint64_t left_to_host_bytes = std::uint64_t{256} << 20;

// Limits of spilling, which serves requests for device memory partly with host memory.
struct SpillSettings {
  // Most bytes of host memory that all spilled allocations may use together; 0 turns spilling off.
  std::uint64_t most_host_bytes = 0;
  // Bytes that are added to each device's total memory in the answers of cuMemGetInfo; 0 if the
  // answers stay as they are. They are also added to the free memory in these answers, less the
  // host memory that spilling uses already.
  std::uint64_t visible_bytes = 0;
};

// Returns the bytes of host memory that spilling may take now: what the process could still get,
// less `left_to_host_bytes`, which stay free. 0 if less than these are left.
inline std::uint64_t host_memory_for_spilling(HostProcess& process) noexcept {
  const std::uint64_t left = process.host_memory_left();
  return left - std::min(left, left_to_host_bytes);
}

}  // namespace cuwarden::pool
