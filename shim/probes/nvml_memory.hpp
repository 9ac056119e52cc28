// Asks NVML, NVIDIA's management library, for a device's memory. CUDA tells it inside a context
// only, and for a MIG slice it tells the slice's memory alone, not that of the whole device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace cuwarden::shim {

// Total and free memory of a device or MIG slice, in bytes, as NVML reports them.
struct NvmlMemory {
  // Size of the memory of a device or MIG slice, and the part that no process uses, in bytes.
  std::uint64_t total_bytes = 0, free_bytes = 0;
};

// Returns the memory of the device or MIG slice with this UUID (cuDeviceGetUuid_v2); null if NVML
// cannot be loaded or does not tell. Never throws; keeps errno and dlerror. Must not be called
// under a lock or in a signal handler, since NVML is loaded. `library`: file name of NVML.
std::optional<NvmlMemory> read_nvml_memory(std::span<const char, 16> uuid,
                                           const char* library = "libnvidia-ml.so.1") noexcept;

// Returns the memory of the whole device that the MIG slice with this UUID (cuDeviceGetUuid_v2) is
// a part of. Null if the UUID is not a slice's, or if NVML cannot be loaded or does not tell; in a
// container NVML tells only with special rights. Never throws; keeps errno and dlerror. Must not be
// called under a lock or in a signal handler, since NVML is loaded. `library`: file name of NVML.
std::optional<NvmlMemory> read_nvml_memory_of_whole(
    std::span<const char, 16> uuid, const char* library = "libnvidia-ml.so.1") noexcept;

}  // namespace cuwarden::shim
