// A device's memory as NVML tells it. CUDA tells it inside a context only, and for a slice (MIG) it
// tells the slice's memory alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace cuwarden::shim {

struct NvmlMemory {
  std::uint64_t total_bytes = 0, free_bytes = 0;
};

// Returns the memory of the device, or slice, of this UUID (cuDeviceGetUuid_v2). Null if NVML does
// not tell. Never throws; keeps errno and dlerror; nvml.hpp says what it takes.
std::optional<NvmlMemory> read_nvml_memory(std::span<const char, 16> uuid,
                                           const char* library = "libnvidia-ml.so.1") noexcept;

// Returns the memory of the whole device that the slice of this UUID is a part of. Null if NVML
// does not tell, which it does in a container only with rights for it, and if the UUID is no
// slice's.
std::optional<NvmlMemory> read_nvml_memory_of_whole(
    std::span<const char, 16> uuid, const char* library = "libnvidia-ml.so.1") noexcept;

}  // namespace cuwarden::shim
