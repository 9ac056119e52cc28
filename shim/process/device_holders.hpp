// Lists the processes that hold memory of a device, for measurements of what this process's calls
// take there.
#pragma once

#include "runtime_hooks/tracking/call_sites.hpp"
#include "runtime_hooks/tracking/devices/neighbours.hpp"

namespace cuwarden::shim {

// Asks NVML for the processes with memory on a device. There is one object in a process.
class DeviceHolderList final : public tracking::HolderList {
 public:
  // Sets the object that walks stacks, which must outlive this one. To be called before ask(), and
  // again in a forked child.
  void begin(tracking::CallSites& sites) noexcept { sites_ = &sites; }

  // Asks NVML, which is loaded if needed, for the processes with memory on a device. `uuid`: the
  // device's UUID (cuDeviceGetUuid_v2). Returns if other processes have memory there, and the bytes
  // of this one. Returns null if NVML does not list the device's processes, in a thread that a
  // seccomp filter of the program confines, and before begin(). Returns null, too, if there is no
  // memory for a stack to ask on.
  std::optional<tracking::DeviceHolders> ask(std::span<const char, 16> uuid) noexcept override;

 private:
  // Walks stacks, to find out if the thread's stack has room; null before begin().
  tracking::CallSites* sites_ = nullptr;
};

}  // namespace cuwarden::shim
