// Lists the processes that hold memory of a device. CUDA tells how much is free; only NVML tells
// who has the rest.
#pragma once

#include <cstdint>
#include <span>

#include "shim/probes/nvml.hpp"

namespace cuwarden::shim {

// A process that holds memory of a device, as NVML lists it.
struct DeviceProcess {
  static constexpr std::uint64_t unknown = UINT64_MAX;  // NVML lists the process without its bytes
  // Says if `pid` is this process or another one. `unsure`: NVML's pids may be the machine's, while
  // this process lives in a pid namespace of its own.
  enum class Whose : std::uint8_t { another, this_process, unsure };

  std::uint32_t pid = 0;
  std::uint64_t used_bytes = unknown;
  Whose whose = Whose::unsure;
};

using DeviceProcessesAnswer = NvmlAnswer;

// The outcome of a question to NVML about a device's processes.
struct DeviceProcesses {
  DeviceProcessesAnswer answer = DeviceProcessesAnswer::failed;
  int nvml_error = 0;       // nvmlReturn_t of the call that failed; 0 if no call of NVML failed
  std::uint32_t found = 0;  // number of processes that NVML lists; may exceed the room given
};

// Lists the processes with memory on the device of this UUID (cuDeviceGetUuid_v2) in `into`, those
// with most memory first. Compute and graphics processes are listed, and this process, too. Loads
// NVML if needed, and leaves it loaded.
//
// Takes 40 KiB of stack besides NVML's own, allocates inside NVML and the loader, and may take as
// long as the driver does. So it must not be called under a lock or in a signal handler. Never
// throws; keeps errno and dlerror. `library`: file name of NVML.
DeviceProcesses read_device_processes(std::span<const char, 16> uuid, std::span<DeviceProcess> into,
                                      const char* library = "libnvidia-ml.so.1") noexcept;

// Returns the answer in words: a part of a sentence, without a full stop.
const char* text_of(DeviceProcessesAnswer) noexcept;

}  // namespace cuwarden::shim
