// Lists the processes that hold memory of a device. CUDA tells only how much is free; NVML tells
// which processes hold the rest.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "shim/probes/nvml.hpp"

namespace cuwarden::shim {

// A process that holds memory of a device, as NVML lists it.
struct DeviceProcess {
  // Value of `used_bytes` if NVML lists the process but does not tell its memory.
  static constexpr std::uint64_t unknown = UINT64_MAX;
  // Says if the listed process is the calling process. `unsure`: the calling process is in a pid
  // namespace of its own, and NVML's pids may be those of the machine, so they cannot be compared.
  enum class Whose : std::uint8_t { another, this_process, unsure };

  // Pid that NVML gives. It counts in the pid namespace of the machine or in that of the calling
  // process, depending on the driver.
  std::uint32_t pid = 0;
  // Bytes of the device that the process holds; `unknown` if NVML does not tell.
  std::uint64_t used_bytes = unknown;
  // Says if the process is the calling process, another one, or may be either (`unsure`).
  Whose whose = Whose::unsure;
};

// `listed` if NVML listed the processes of a device; otherwise the reason why it did not.
using DeviceProcessesAnswer = NvmlAnswer;

// The outcome of read_device_processes().
struct DeviceProcesses {
  // `listed` if NVML listed the processes; otherwise the reason why it did not.
  DeviceProcessesAnswer answer = DeviceProcessesAnswer::failed;
  int nvml_error = 0;  // nvmlReturn_t of the call of NVML that failed; 0 if no call failed
  // Number of processes that NVML lists; may be larger than the caller's array. 0 if unknown.
  std::uint32_t found = 0;
  // Number in the name of the device's file, such as 0 of /dev/nvidia0. Null: NVML does not tell,
  // as for a MIG slice.
  std::optional<std::uint32_t> file_number;
};

// Lists the processes with memory on the device or MIG slice of this UUID (cuDeviceGetUuid_v2):
// compute and graphics processes, the calling process among them. Writes them to the beginning of
// `into`, processes with most memory first, and leaves out those that do not fit. Loads NVML if
// needed, and leaves it loaded.
//
// Takes 40 KiB of stack besides NVML's own, allocates inside NVML and the loader, and may take as
// long as the driver does. So it must not be called under a lock or in a signal handler. Never
// throws; keeps errno and dlerror. `library`: file name of NVML.
DeviceProcesses read_device_processes(std::span<const char, 16> uuid, std::span<DeviceProcess> into,
                                      const char* library = "libnvidia-ml.so.1") noexcept;

// Returns the answer in English, such as "NVML does not know this device": a clause without a full
// stop, in static memory.
const char* text_of(DeviceProcessesAnswer) noexcept;

}  // namespace cuwarden::shim
