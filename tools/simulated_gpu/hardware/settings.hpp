// Settings of the simulated GPU, from the environment. They are read once, at the first call.
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

// One rule of CUWARDEN_SIM_FAIL: `function:n[:code]`, `function:every:n[:code]`,
// `function:from:n[:code]`, `function:lost:n[:code[:hang]]`, `function:*[:code]`. The
// code may also be `signal` or `hang`.
struct FaultRule {
  enum class Calls {
    nth,
    every_nth,
    from_nth,  // The n-th call and all after it fail.
    lost,      // The device is lost with the n-th call: all later calls of all functions fail.
  };
  std::string function;      // An exported name, or the name without _vN, _ptsz, _ptds.
  unsigned long long n = 0;  // The number n of a call, from 1; 0 means every call.
  Calls calls = Calls::nth;
  int code = 2;  // CUDA_ERROR_OUT_OF_MEMORY.
  // The action of the call that replaces a failure. Once a device is lost, all later calls do the
  // same.
  enum class Instead {
    nothing,
    signal,  // `signal`: sends its thread SIGUSR1 while it holds the driver's lock, and goes on.
    hang,    // `hang`: takes the driver's lock and never returns.
  };
  Instead instead = Instead::nothing;
};

// One rule of CUWARDEN_SIM_LOCAL_MEMORY, `part-of-kernel-name:bytes`: the local memory that a
// thread of such a kernel needs.
struct LocalMemoryRule {
  std::string kernel;
  std::size_t bytes = 0;
};

// CUWARDEN_SIM_NVML: the processes that NVML lists for a device.
enum class ProcessList {
  all,
  hide_others,  // `hide_others`: this process alone, as in a container.
  refuse,       // `refuse`: NVML_ERROR_NO_PERMISSION.
};

// CUWARDEN_SIM_COMPUTE_MODE, for all devices.
enum class ComputeMode {
  shared,             // `default`: any number of contexts.
  prohibited,         // `prohibited`: no context.
  exclusive_process,  // `exclusive_process`: one context of all processes.
};

// CUWARDEN_SIM_VMM: memory that can be mapped by the virtual memory functions.
enum class VirtualMemory {
  all,
  device_only,  // `device`: the host's memory cannot be mapped.
  none,         // `none`: nothing can, as with an old driver or a virtual GPU.
};

struct Settings {
  std::size_t memory = 16 * kGiB;  // CUWARDEN_SIM_MEMORY: bytes of each device.
  int devices = 1;                 // CUWARDEN_SIM_DEVICES: devices of the machine.
  std::vector<int> visible{0};     // Devices that this process sees, in its order.
  std::size_t pinned_limit = 0;    // CUWARDEN_SIM_PINNED_LIMIT in bytes; 0: no limit.
  std::size_t other_process = 0;   // CUWARDEN_SIM_OTHER_PROCESS: bytes that another process holds.
  std::string shared;  // CUWARDEN_SIM_SHARED: path of a file; empty: devices are not shared.
  ProcessList processes = ProcessList::all;  // From CUWARDEN_SIM_NVML.
  ComputeMode compute_mode = ComputeMode::shared;
  VirtualMemory virtual_memory = VirtualMemory::all;
  // CUWARDEN_SIM_MIG: bytes of the whole device that each device is a slice of; 0: devices are
  // whole.
  std::size_t whole_memory = 0;
  // CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: most bytes that this process may have, by device. Counts only
  // if CUWARDEN_SIM_MPS is 1, which stands for a running MPS server.
  std::map<int, std::size_t> memory_limits;
  int driver_version = 13000;  // CUWARDEN_SIM_DRIVER_VERSION, such as 13000 for CUDA 13.0.
  // CUWARDEN_SIM_KERNEL_TIME: time that each kernel takes.
  std::chrono::nanoseconds kernel_time{0};
  std::chrono::nanoseconds end_time{0};       // what the driver's exit handler takes
  std::vector<FaultRule> faults;              // Rules of CUWARDEN_SIM_FAIL.
  std::vector<LocalMemoryRule> local_memory;  // Rules of CUWARDEN_SIM_LOCAL_MEMORY.
};

// Reads the settings. For a value that is not understood, writes one line to stderr and uses the
// default.
Settings read_settings();

}  // namespace cuwarden::simulated_gpu
