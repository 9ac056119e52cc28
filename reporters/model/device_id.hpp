// The number of a device in reports.
#pragma once

#include <optional>

#include "reporters/model/values.hpp"
#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden {

// Returns the CUDA ordinal as the report has it; null if it is negative, as for host memory.
inline model::MaybeId device_id(DeviceOrdinal device) {
  return device.value < 0 ? std::nullopt : std::optional(static_cast<model::Id>(device.value));
}

}  // namespace cuwarden
