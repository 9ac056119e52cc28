// Reads CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: how much memory of each device MPS (the CUDA
// Multi-Process Service) grants to a client process. https://docs.nvidia.com/deploy/mps
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::shim {

// Returns the limit in bytes on this process's memory of the device with this CUDA ordinal. `text`:
// the value of CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, such as "0=2G,1=512MB". Null if the text names no
// limit for the device, or if that limit cannot be parsed. The function does not check if an MPS
// server runs, which alone enforces the limit.
std::optional<std::uint64_t> mps_limit_of(std::string_view text, DeviceOrdinal) noexcept;

}  // namespace cuwarden::shim
