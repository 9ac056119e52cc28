// Finds how much memory of a device other processes hold. Only NVML, NVIDIA's management library,
// knows, and it must be loaded into the process. So it is asked only if another process seems to
// use the device.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::shim {

// Bytes in use on a device, beyond those that this process's records explain, up to which NVML is
// not asked about other processes. A context and its code may take as much. At an incident, NVML is
// asked all the same if the device allows only one process.
inline constexpr std::int64_t hidden_by_a_context = std::int64_t{1} << 30;

// The memory of a device that other processes hold, as NVML lists them.
struct MemoryOfOthers {
  // Sum of the bytes that other processes hold. Leaves out the calling process. Also leaves out a
  // process if NVML does not tell its bytes, if it may be the calling process, or if it is not
  // among the 64 with most memory. Null if NVML cannot list the device's processes. Null, too, if
  // the sum is 0 and processes other than the calling one are left out.
  std::optional<std::uint64_t> bytes;
  // Number of processes on NVML's list that may be the calling one, because NVML's pids may be
  // those of another pid namespace.
  std::uint32_t unmatched = 0;
  // Number in the name of the device's file, such as 0 of /dev/nvidia0; null: NVML does not tell.
  std::optional<std::uint32_t> file_number;
};

// Asks NVML for the memory of the device that other processes hold. Writes a line to the log if
// NVML cannot list the processes. `DeviceView`: the device's row in the ledger. Calls visit(pid,
// bytes) for each process that certainly is not the calling process; `bytes` is
// ledger::unknown_bytes if NVML does not tell them.
MemoryOfOthers memory_of_others(const ledger::DeviceView&,
                                FunctionRef<void(std::uint32_t, std::uint64_t)> visit);

// Asks NVML how many bytes of each device other processes hold, and writes the answers to the
// ledger. To be called when the process ends, after the devices were read for the last time. Asks
// only for devices with more than hidden_by_a_context (1 GiB) in use beyond what this process's
// records explain. Calls may_ask() before it asks about such a device, and leaves the device out if
// may_ask() returns false.
void note_others_at_exit(ledger::Writer&, const FunctionRef<bool()>& may_ask) noexcept;

}  // namespace cuwarden::shim
