// What NVML says of a device's memory. CUDA says it inside a context only, and of a slice (MIG)
// only what the slice has.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace cuwarden::shim {

struct NvmlMemory {
  std::uint64_t total_bytes = 0, free_bytes = 0;
};

// Of the device, or slice, of this UUID (cuDeviceGetUuid_v2). Null where NVML does not say. Never
// throws; keeps errno and dlerror; nvml.hpp says what it takes.
std::optional<NvmlMemory> read_nvml_memory(std::span<const char, 16> uuid,
                                           const char* library = "libnvidia-ml.so.1") noexcept;

// The same of the device that the slice of this UUID is of. Null also where it is no slice; in a
// container NVML wants rights for that.
std::optional<NvmlMemory> read_nvml_memory_of_whole(
    std::span<const char, 16> uuid, const char* library = "libnvidia-ml.so.1") noexcept;

}  // namespace cuwarden::shim
