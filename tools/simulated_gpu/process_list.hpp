// What the simulated NVML asks the simulated driver. Private to the two: no driver has it.
#pragma once

namespace cuwarden::simulated_gpu {

struct ListedProcess {
  unsigned pid;
  unsigned long long used_bytes;
};

constexpr int kNoSuchDevice = -1, kListRefused = -2;

}  // namespace cuwarden::simulated_gpu

// How many processes hold memory of the machine's device, seen by this process or not, of which as
// many as fit are written; or one of the above.
extern "C" __attribute__((visibility("default"))) int cuSimulatedGpuProcesses(
    int device, cuwarden::simulated_gpu::ListedProcess* into, int capacity);
