// Functions that the simulated driver (libcuda) exports for the simulated NVML alone; no real
// driver has them. Their results include other processes that share the devices
// (CUWARDEN_SIM_SHARED).
#pragma once

namespace cuwarden::simulated_gpu {

// A process that holds memory of one simulated device.
struct ListedProcess {
  unsigned pid;                   // Id of the process, as NVML lists it.
  unsigned long long used_bytes;  // Bytes of the device that the process holds; not 0.
};

// Results by which cuSimulatedGpuProcesses() and cuSimulatedGpuWhole() say that they failed.
// kNoSuchDevice: the machine has no device of the given number. kListRefused: NVML must return
// NVML_ERROR_NO_PERMISSION to the program, because of CUWARDEN_SIM_NVML=refuse.
constexpr int kNoSuchDevice = -1, kListRefused = -2;

// Sizes of a device, written by cuSimulatedGpuWhole(). If CUWARDEN_SIM_MIG is set, the device that
// programs see is a slice (MIG) of a larger, whole device.
struct WholeDevice {
  bool is_sliced;  // True if the device that programs see is a slice (MIG) of a larger one.
  // Bytes of the whole device of which programs see a slice; 0 if they see no slice.
  unsigned long long bytes;
  // own_bytes: bytes of the device that programs see, which may be a slice. own_free_bytes: bytes
  // of that device that no process holds. If this process sees the device, the host's page cache
  // does not hold them either.
  unsigned long long own_bytes, own_free_bytes;
  // cgroup_limit_bytes: most bytes of the device that this process's cgroup may hold; 0: no limit.
  // cgroup_used_bytes: bytes of the device that the cgroup holds; only this process is counted.
  unsigned long long cgroup_limit_bytes, cgroup_used_bytes;
};

}  // namespace cuwarden::simulated_gpu

// Writes the processes that hold memory of a device to the array `into`, at most `capacity` of
// them; with CUWARDEN_SIM_NVML=hide_others, this process alone. `board`: number of the device in
// the machine, from 0; this process need not see the device. Returns the number of such processes,
// which may be 0 or more than `capacity`. Returns kNoSuchDevice if the machine has no such device,
// or kListRefused with CUWARDEN_SIM_NVML=refuse; then writes nothing.
extern "C" __attribute__((visibility("default"))) int cuSimulatedGpuProcesses(
    int board, cuwarden::simulated_gpu::ListedProcess* into, int capacity);
// Writes the sizes of a simulated device to *into. `board`: number of the device in the machine,
// from 0. Returns 0; kNoSuchDevice, without writing, if the machine has no such device; or
// kListRefused, after writing, with CUWARDEN_SIM_NVML=refuse.
extern "C" __attribute__((visibility("default"))) int cuSimulatedGpuWhole(
    int board, cuwarden::simulated_gpu::WholeDevice* into);
