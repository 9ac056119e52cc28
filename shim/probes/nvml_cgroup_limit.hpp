// Asks NVML for the limit on a device's memory that a cgroup has. An administrator sets it with
// nvidia-smi memory-limits, for all processes of the cgroup together.
// https://docs.nvidia.com/deploy/mps/mpsv3-memory-partitioning.html
#pragma once

#include <climits>
#include <cstdint>
#include <optional>
#include <span>

namespace cuwarden::shim {

// The limit on a device's memory for the processes of a cgroup.
struct NvmlCgroupLimit {
  // Most bytes of the device that the processes of the cgroup may have together.
  std::uint64_t limit_bytes = 0;
  // Bytes of the device that count towards limit_bytes now.
  std::uint64_t used_bytes = 0;
};

// A cgroup of version 2, by the path of its folder, such as /sys/fs/cgroup/user.slice.
struct UnifiedCgroup {
  // Absolute path of the cgroup's folder: /sys/fs/cgroup for the root; empty: unknown.
  char path[PATH_MAX] = "";
};

// Returns the calling process's cgroup of version 2. The path is empty if the process has none
// there, or if the cgroup lies outside of what is mounted. Keeps errno.
UnifiedCgroup own_unified_cgroup() noexcept;

// Returns the cgroup's limit on the memory of the device with this UUID (cuDeviceGetUuid_v2). If
// the cgroup has none, returns that of the nearest cgroup above that has one. If that cgroup's
// folder has the file `dmem.max`, the limits of the cgroups above it count as well. The function
// then returns the limit that leaves the fewest bytes unused. Null if there is no limit, as for a
// MIG slice, or if NVML cannot be loaded or does not tell. `cgroup`: absolute path of the cgroup's
// folder; for one outside of /sys/fs/cgroup, the result is null. Never throws; keeps errno and
// dlerror. Must not be called under a lock or in a signal handler, since it loads NVML. `library`:
// file name of NVML.
std::optional<NvmlCgroupLimit> read_nvml_cgroup_limit(
    std::span<const char, 16> uuid, const char* cgroup,
    const char* library = "libnvidia-ml.so.1") noexcept;

}  // namespace cuwarden::shim
