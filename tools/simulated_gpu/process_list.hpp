// What the simulated NVML asks the simulated driver. Private to the two: no driver has it.
#pragma once

namespace cuwarden::simulated_gpu {

struct ListedProcess {
  unsigned pid;
  unsigned long long used_bytes;
};

constexpr int kNoSuchDevice = -1, kListRefused = -2;

// A device, and the whole one where that is a slice.
struct WholeDevice {
  bool is_sliced;
  unsigned long long bytes;  // of the whole
  unsigned long long own_bytes, own_free_bytes;
};

}  // namespace cuwarden::simulated_gpu

// How many processes hold memory of the machine's device, seen by this process or not, of which as
// many as fit are written; or one of the above.
extern "C" __attribute__((visibility("default"))) int cuSimulatedGpuProcesses(
    int board, cuwarden::simulated_gpu::ListedProcess* into, int capacity);
// The same of how large it is: kNoSuchDevice, kListRefused, or 0.
extern "C" __attribute__((visibility("default"))) int cuSimulatedGpuWhole(
    int board, cuwarden::simulated_gpu::WholeDevice* into);
