// CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: what MPS lets a client process have of each device.
// https://docs.nvidia.com/deploy/mps
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::shim {

// Returns the limit in bytes for the device in a text like "0=2G,1=512MB", the value of
// CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; null if the text has none for it or cannot be parsed. Only an
// MPS server enforces such a limit; whether one runs is not looked at.
std::optional<std::uint64_t> mps_limit_of(std::string_view text, DeviceOrdinal) noexcept;

}  // namespace cuwarden::shim
