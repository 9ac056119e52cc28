// CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: what MPS lets a client process have of each device.
// https://docs.nvidia.com/deploy/mps
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::shim {

// Bytes for that device in a text like "0=2G,1=512MB"; null where there is none, or one that is not
// understood. That there is one does not say that an MPS server holds anybody to it.
std::optional<std::uint64_t> mps_limit_of(std::string_view text, DeviceOrdinal) noexcept;

}  // namespace cuwarden::shim
