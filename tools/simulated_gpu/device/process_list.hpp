// Functions of the simulated driver for the simulated NVML. They are private to the two: no driver
// has them.
#pragma once

namespace cuwarden::simulated_gpu {

struct ListedProcess {
  unsigned pid;
  unsigned long long used_bytes;
};

constexpr int kNoSuchDevice = -1, kListRefused = -2;

// A device, or a slice with the whole device that it is part of.
struct WholeDevice {
  bool is_sliced;
  unsigned long long bytes;  // Bytes of the whole device.
  unsigned long long own_bytes, own_free_bytes;
};

}  // namespace cuwarden::simulated_gpu

// Writes the processes that hold memory of the machine's device `board`, whether or not this
// process sees it: at most `capacity` of them. Returns how many there are, or kNoSuchDevice or
// kListRefused.
extern "C" __attribute__((visibility("default"))) int cuSimulatedGpuProcesses(
    int board, cuwarden::simulated_gpu::ListedProcess* into, int capacity);
// Writes the sizes of the device `board`. Returns 0, kNoSuchDevice or kListRefused.
extern "C" __attribute__((visibility("default"))) int cuSimulatedGpuWhole(
    int board, cuwarden::simulated_gpu::WholeDevice* into);
