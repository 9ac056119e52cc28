// A device's memory as NVML tells it. CUDA tells it inside a context only, and for a slice (MIG) it
// tells the slice's memory alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace cuwarden::shim {

// Memory of a device or MIG slice, in bytes, as NVML says.
struct NvmlMemory {
  std::uint64_t total_bytes = 0, free_bytes = 0;
};

// Returns the memory of the device or MIG slice of this UUID (cuDeviceGetUuid_v2); null if NVML
// does not tell. Never throws; keeps errno and dlerror. Must not be called under a lock or in a
// signal handler (nvml.hpp).
std::optional<NvmlMemory> read_nvml_memory(std::span<const char, 16> uuid,
                                           const char* library = "libnvidia-ml.so.1") noexcept;

// Returns the memory of the whole device that the MIG slice of this UUID is a part of; null if the
// UUID is no slice's, or if NVML does not tell. In a container NVML tells it only with special
// rights.
std::optional<NvmlMemory> read_nvml_memory_of_whole(
    std::span<const char, 16> uuid, const char* library = "libnvidia-ml.so.1") noexcept;

}  // namespace cuwarden::shim
