// Lists the processes that hold memory of a device. CUDA tells how much is free; only NVML tells
// who has the rest.
#pragma once

#include <cstdint>
#include <span>

#include "shim/probes/nvml.hpp"

namespace cuwarden::shim {

struct DeviceProcess {
  static constexpr std::uint64_t unknown = UINT64_MAX;  // NVML knows the process alone
  // `unsure`: in a pid namespace of its own, a process may be given other processes' numbers there,
  // or the machine's.
  enum class Whose : std::uint8_t { another, this_process, unsure };

  std::uint32_t pid = 0;
  std::uint64_t used_bytes = unknown;
  Whose whose = Whose::unsure;
};

using DeviceProcessesAnswer = NvmlAnswer;

struct DeviceProcesses {
  DeviceProcessesAnswer answer = DeviceProcessesAnswer::failed;
  int nvml_error = 0;       // nvmlReturn_t of what failed; 0: nothing did, or not in NVML
  std::uint32_t found = 0;  // may be more than were asked for
};

// Fills `into` with what NVML lists for the device of this UUID (cuDeviceGetUuid_v2), the largest
// first: compute and graphics, and this process too. Loads NVML, where that is not loaded, and
// leaves it loaded; begins and ends a use of it, which it counts. Takes 40 KiB of stack and what
// NVML takes, allocates inside NVML and the loader, and may take as long as the driver does: not
// under a lock, nor in a signal handler. Never throws; keeps errno and dlerror.
DeviceProcesses read_device_processes(std::span<const char, 16> uuid, std::span<DeviceProcess> into,
                                      const char* library = "libnvidia-ml.so.1") noexcept;

// A part of a sentence, without a full stop.
const char* text_of(DeviceProcessesAnswer) noexcept;

}  // namespace cuwarden::shim
