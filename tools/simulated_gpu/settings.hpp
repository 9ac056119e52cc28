// What the environment asks of the simulated GPU. Read once, at the first call.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace cuwarden::simulated_gpu {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;
constexpr std::size_t kGiB = 1024 * kMiB;

// CUWARDEN_SIM_FAIL: `function:n[:code]`, `function:every:n[:code]`, `function:from:n[:code]`,
// `function:lost:n[:code]`, `function:*[:code]`.
struct FaultRule {
  enum class Calls {
    nth,
    every_nth,
    from_nth,  // that one and all after it
    lost,      // the device is gone with the n-th: so do all calls of all functions after it
  };
  std::string function;      // an exported name, or the name without _vN, _ptsz, _ptds
  unsigned long long n = 0;  // 0: every call
  Calls calls = Calls::nth;
  int code = 2;  // CUDA_ERROR_OUT_OF_MEMORY
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

// CUWARDEN_SIM_COMPUTE_MODE, of each device.
enum class ComputeMode {
  shared,             // `default`
  prohibited,         // `prohibited`: no context
  exclusive_process,  // `exclusive_process`: one, of all processes
};

// CUWARDEN_SIM_VMM: what can be mapped.
enum class VirtualMemory {
  all,
  device_only,  // `device`: not the host's memory
  none,         // `none`: as an old driver, or a virtual GPU
};

struct Settings {
  std::size_t memory = 16 * kGiB;            // CUWARDEN_SIM_MEMORY, of each device
  int devices = 1;                           // CUWARDEN_SIM_DEVICES, of the machine
  std::vector<int> visible{0};               // which of them this process sees, in its order
  std::size_t pinned_limit = 0;              // CUWARDEN_SIM_PINNED_LIMIT, 0: none
  std::size_t other_process = 0;             // CUWARDEN_SIM_OTHER_PROCESS
  std::string shared;                        // CUWARDEN_SIM_SHARED, a file; empty: none
  ProcessList processes = ProcessList::all;  // CUWARDEN_SIM_NVML
  ComputeMode compute_mode = ComputeMode::shared;
  VirtualMemory virtual_memory = VirtualMemory::all;
  // CUWARDEN_SIM_MIG: each device is a slice of a device with so much; 0: a device
  std::size_t whole_memory = 0;
  // By device; of CUDA_MPS_PINNED_DEVICE_MEM_LIMIT where CUWARDEN_SIM_MPS is 1: an MPS server runs
  std::map<int, std::size_t> memory_limits;
  int driver_version = 13000;                 // CUWARDEN_SIM_DRIVER_VERSION
  std::chrono::nanoseconds kernel_time{0};    // CUWARDEN_SIM_KERNEL_TIME
  std::vector<FaultRule> faults;              // CUWARDEN_SIM_FAIL
  std::vector<LocalMemoryRule> local_memory;  // CUWARDEN_SIM_LOCAL_MEMORY
};

// A value that is not understood is one line on stderr, and the default.
Settings read_settings();

}  // namespace cuwarden::simulated_gpu
