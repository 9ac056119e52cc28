// Functions that the simulated driver (libcuda) exports for the simulated NVML alone. No real
// driver has them. Processes that share the devices (CUWARDEN_SIM_SHARED) are known to them.
#pragma once

namespace cuwarden::simulated_gpu {

// A process that holds memory of a device.
struct ListedProcess {
  unsigned pid;
  unsigned long long used_bytes;  // Memory of the device that the process holds.
};

// Results of cuSimulatedGpuProcesses() and cuSimulatedGpuWhole(). kNoSuchDevice: the machine has no
// such device. kListRefused: by CUWARDEN_SIM_NVML=refuse, NVML may not answer.
constexpr int kNoSuchDevice = -1, kListRefused = -2;

// Sizes of a device, written by cuSimulatedGpuWhole(). If CUWARDEN_SIM_MIG is set, the device that
// programs see is a slice (MIG) of a larger, whole device.
struct WholeDevice {
  bool is_sliced;            // True if the device is a slice.
  unsigned long long bytes;  // Bytes of the whole device; 0 if the device is not a slice.
  // Size and free bytes of the device or slice itself.
  unsigned long long own_bytes, own_free_bytes;
};

}  // namespace cuwarden::simulated_gpu

// Writes the processes that hold memory of a device to the array `into`, at most `capacity` of
// them. `board`: number of the device in the machine, from 0; this process need not see the device.
// Returns how many processes there are, which may be more than `capacity`. Otherwise returns
// kNoSuchDevice (the machine has no such device) or kListRefused (CUWARDEN_SIM_NVML=refuse).
extern "C" __attribute__((visibility("default"))) int cuSimulatedGpuProcesses(
    int board, cuwarden::simulated_gpu::ListedProcess* into, int capacity);
// Writes the sizes of a device to *into. `board`: number of the device in the machine, from 0.
// Returns 0; kNoSuchDevice, without writing, if the machine has no such device; or kListRefused,
// after writing, with CUWARDEN_SIM_NVML=refuse.
extern "C" __attribute__((visibility("default"))) int cuSimulatedGpuWhole(
    int board, cuwarden::simulated_gpu::WholeDevice* into);
