// What the environment asks of the simulated GPU. Read once, at the first call.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace cuwarden::simulated_gpu {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;
constexpr std::size_t kGiB = 1024 * kMiB;

// CUWARDEN_SIM_FAIL: `function:n[:code]`, `function:every:n[:code]`, `function:*[:code]`.
struct FaultRule {
  std::string function;      // an exported name, or the name without _vN, _ptsz, _ptds
  unsigned long long n = 0;  // 0: every call
  bool every = false;        // every n-th call rather than the n-th
  int code = 2;              // CUDA_ERROR_OUT_OF_MEMORY
};

// CUWARDEN_SIM_LOCAL_MEMORY: `part-of-kernel-name:bytes`, what a thread of the kernel needs.
struct LocalMemoryRule {
  std::string kernel;
  std::size_t bytes = 0;
};

// CUWARDEN_SIM_NVML: what NVML says of the processes on a device.
enum class ProcessList {
  all,
  hide_others,  // `hide_others`: this process alone, as in a container
  refuse,       // `refuse`: NVML_ERROR_NO_PERMISSION
};

struct Settings {
  std::size_t memory = 16 * kGiB;             // CUWARDEN_SIM_MEMORY, of each device
  int devices = 1;                            // CUWARDEN_SIM_DEVICES, of the machine
  std::vector<int> visible{0};                // which of them this process sees, in its order
  std::size_t pinned_limit = 0;               // CUWARDEN_SIM_PINNED_LIMIT, 0: none
  std::size_t other_process = 0;              // CUWARDEN_SIM_OTHER_PROCESS
  std::string shared;                         // CUWARDEN_SIM_SHARED, a file; empty: none
  ProcessList processes = ProcessList::all;   // CUWARDEN_SIM_NVML
  int driver_version = 13000;                 // CUWARDEN_SIM_DRIVER_VERSION
  std::chrono::nanoseconds kernel_time{0};    // CUWARDEN_SIM_KERNEL_TIME
  std::vector<FaultRule> faults;              // CUWARDEN_SIM_FAIL
  std::vector<LocalMemoryRule> local_memory;  // CUWARDEN_SIM_LOCAL_MEMORY
};

// A value that is not understood is one line on stderr, and the default.
Settings read_settings();

}  // namespace cuwarden::simulated_gpu
