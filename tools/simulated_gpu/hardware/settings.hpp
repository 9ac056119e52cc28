// Settings of the simulated GPU, from environment variables CUWARDEN_SIM_*. They are read once, at
// the first call of the simulated driver.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cuwarden::simulated_gpu {

constexpr std::size_t kKiB = 1024;         // Bytes of a KiB.
constexpr std::size_t kMiB = 1024 * kKiB;  // Bytes of a MiB.
constexpr std::size_t kGiB = 1024 * kMiB;  // Bytes of a GiB.

// One rule of CUWARDEN_SIM_FAIL, by which calls of a function of the driver fail. The text of a
// rule is one of `function:n[:code]`, `function:every:n[:code]`, `function:from:n[:code]`,
// `function:lost:n[:code[:hang]]` and `function:*[:code]`. The code may be replaced by the word
// `signal`, `hang` or `tell`, but not after `lost`.
struct FaultRule {
  // Says which calls of the rule's function fail; n is the number in the rule's text.
  enum class Calls {
    nth,        // Only call number n of the rule's function fails.
    every_nth,  // Each call of the rule's function fails whose number is a multiple of n.
    from_nth,   // Call number n of the rule's function and all its later calls fail.
    // The device is lost with call number n of the rule's function: that call and all later calls
    // of all functions that need a device fail.
    lost,
  };
  // Name of the function: the full name, or the name without _vN, _ptsz or _ptds.
  std::string function;
  // Number of the call, from 1, to which `calls` refers; 0 (`*` in the rule): every call fails.
  unsigned long long n = 0;
  Calls calls = Calls::nth;  // Calls of `function` that fail, by `n`; unused if `n` is 0.
  int code = 2;  // The CUresult that failing calls return; 2 is CUDA_ERROR_OUT_OF_MEMORY.
  // Action that replaces the failure of a call. With Calls::lost, `hang` is the action of the calls
  // after the one with which the device was lost.
  enum class Instead {
    nothing,  // No action: the call fails and returns `code`.
    // The call raises SIGUSR1 in its thread while it holds the simulated driver's lock; then it
    // goes on as usual.
    signal,
    hang,  // The call takes the simulated driver's lock and never returns.
    // The call first calls the program's function `simulated_gpu_tells`, without the simulated
    // driver's lock (see requested_failure()); then it goes on as usual.
    tell,
  };
  Instead instead = Instead::nothing;  // Action that replaces the failure of the rule's calls.
};

// One rule of CUWARDEN_SIM_LOCAL_MEMORY, `part-of-kernel-name:bytes`: the local memory that some
// kernels need.
struct LocalMemoryRule {
  // A part of kernels' names: the rule holds for all kernels whose names contain it.
  std::string kernel;
  std::size_t bytes = 0;  // Bytes of local memory for each thread of these kernels.
};

// Values of CUWARDEN_SIM_NVML: the processes that the simulated NVML lists for a device.
enum class ProcessList {
  all,          // NVML lists all processes that hold memory of the device (the default).
  hide_others,  // `hide_others`: NVML lists the asking process alone, as in a container.
  refuse,       // `refuse`: NVML lists no process, and returns NVML_ERROR_NO_PERMISSION.
};

// Values of CUWARDEN_SIM_COMPUTE_MODE: the contexts that each simulated device allows.
enum class ComputeMode {
  shared,             // `default`: a device allows any number of contexts (the default).
  prohibited,         // `prohibited`: a device allows no context.
  exclusive_process,  // `exclusive_process`: a device allows one context among all processes.
};

// Values of CUWARDEN_SIM_VMM: the memory that the virtual memory functions (cuMemCreate, cuMemMap)
// can map on the simulated GPU.
enum class VirtualMemory {
  all,          // `all`: memory of devices and of the host can be mapped (the default).
  device_only,  // `device`: memory of devices can be mapped, the host's memory cannot.
  none,         // `none`: no memory can be mapped, as with an old driver or a virtual GPU.
  // `apart`: memory of devices and of the host can be mapped. If a handle is mapped at two
  // addresses at once, the second one shows other memory than the first, as no real device should.
  apart,
};

// The values of all settings of the simulated GPU. A member keeps its initial value here if its
// environment variable is not set, is empty, or has a value that is not accepted.
struct Settings {
  std::size_t memory = 16 * kGiB;  // CUWARDEN_SIM_MEMORY: bytes of each device.
  // CUWARDEN_SIM_DEVICES: number of devices of the machine, 0 to 64. The process may see fewer of
  // them (`visible`).
  int devices = 1;
  // Devices that this process can use. The index is the CUDA ordinal, the value the number of the
  // device in the machine, from 0. They are the numbers in CUDA_VISIBLE_DEVICES before the first
  // entry that is no device's number. All devices if CUDA_VISIBLE_DEVICES is not set; also if
  // CUWARDEN_SIM_DEVICES is not set, because the list is then meant for real devices.
  std::vector<int> visible{0};
  // CUWARDEN_SIM_PINNED_LIMIT: most bytes of page-locked host memory; 0: no limit.
  std::size_t pinned_limit = 0;
  // CUWARDEN_SIM_OTHER_PROCESS: bytes of each device that a made-up process holds.
  std::size_t other_process = 0;
  // CUWARDEN_SIM_OTHER_PID: pid by which NVML lists the made-up process; 0: the pid is 1, or 2 if
  // this process itself is process 1.
  int other_pid = 0;
  // CUWARDEN_SIM_SHARED: path of the file by which processes share the devices; empty: each process
  // has devices of its own.
  std::string shared;
  // CUWARDEN_SIM_NVML: processes that the simulated NVML lists.
  ProcessList processes = ProcessList::all;
  // CUWARDEN_SIM_COMPUTE_MODE: contexts that each device allows.
  ComputeMode compute_mode = ComputeMode::shared;
  // CUWARDEN_SIM_VMM: memory that cuMemMap can map.
  VirtualMemory virtual_memory = VirtualMemory::all;
  // CUWARDEN_SIM_MIG: each device is a slice (MIG) of a whole device of this many bytes; 0: devices
  // are no slices.
  std::size_t whole_memory = 0;
  // CUWARDEN_SIM_INTEGRATED: bytes of each device that the host's page cache takes, and that are
  // not free. The devices then share the host's memory. Null: they have memory of their own.
  std::optional<std::size_t> page_cache;
  // CUWARDEN_SIM_CGROUP_LIMIT: limit on the bytes of each device for this process's cgroup; 0: no
  // limit.
  std::size_t cgroup_limit = 0;
  // CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: most bytes that this process may have of a device, by CUDA
  // ordinal; a device that is not in the map has no limit. Read only if CUWARDEN_SIM_MPS is 1: then
  // an MPS server is taken to run.
  std::map<int, std::size_t> memory_limits;
  // CUWARDEN_SIM_DRIVER_VERSION: CUDA version that the driver supports, such as 13000 for 13.0.
  int driver_version = 13000;
  // CUWARDEN_SIM_KERNEL_TIME: time for which each kernel keeps its stream busy.
  std::chrono::nanoseconds kernel_time{0};
  int threads = 0;  // CUWARDEN_SIM_THREADS: number of threads that the driver starts in cuInit.
  // CUWARDEN_SIM_END_TIME: time for which the driver's exit handler sleeps at the end of the
  // process.
  std::chrono::nanoseconds end_time{0};
  std::vector<FaultRule> faults;  // CUWARDEN_SIM_FAIL: rules by which calls fail.
  // CUWARDEN_SIM_LOCAL_MEMORY: local memory that kernels need.
  std::vector<LocalMemoryRule> local_memory;
};

// Returns the settings of the simulated GPU, read from the environment variables. For a value that
// is not accepted, writes one line to stderr and uses the default.
Settings read_settings();

}  // namespace cuwarden::simulated_gpu
