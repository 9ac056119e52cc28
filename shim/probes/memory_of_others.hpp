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

// A limit in bytes, 1 GiB. NVML is not asked about other processes if no more than this is in use
// on the device beyond what this process's records explain: a context and its code may take as
// much. At an incident, fewer bytes are enough if the size of this process's context is known. NVML
// is asked all the same if the device allows only one process.
inline constexpr std::int64_t hidden_by_a_context = std::int64_t{1} << 30;

// NVML's answer about the memory of a device: the bytes of other processes, and of this one.
struct MemoryOfOthers {
  // Sum of the bytes that other processes hold. Only the 64 processes with most memory count. A
  // process is left out if NVML does not tell its bytes, or if it may be the calling process. Null
  // if NVML cannot list the device's processes. Null, too, if the sum is 0 and processes other than
  // the calling one are left out.
  std::optional<std::uint64_t> bytes;
  // Bytes that the calling process holds; null: NVML does not tell.
  std::optional<std::uint64_t> own_bytes;
  // Number of processes on NVML's list that may be the calling one, because NVML's pids may be
  // those of another pid namespace.
  std::uint32_t unmatched = 0;
  // Number in the name of the device's file, such as 0 of /dev/nvidia0; null: NVML does not tell.
  std::optional<std::uint32_t> file_number;
};

// Asks NVML for the memory of the device that other processes hold. Writes a line to the log if
// NVML cannot list the processes. `DeviceView`: the device's row in the ledger. Calls visit(pid,
// bytes) for those of the 64 processes with most memory that certainly are not the calling process;
// `bytes` is ledger::unknown_value if NVML does not tell them.
MemoryOfOthers memory_of_others(const ledger::DeviceView&,
                                FunctionRef<void(std::uint32_t, std::uint64_t)> visit);

// The used bytes of a device, as this process's records and NVML divide them.
struct DeviceShares {
  // Used bytes that neither this process's records nor its contexts explain; negative if records
  // and contexts together are more than the used bytes.
  std::int64_t unexplained = 0;
  // Bytes of other processes, as NVML lists them. Memory of other processes that this process has
  // opened (IPC) is left out.
  std::uint64_t others = 0;
  // Bytes of this process on the device. `own`: as NVML lists them. `recorded`: as this process's
  // records tell; the device's first context has no record, so its bytes are left out.
  std::uint64_t own = 0, recorded = 0;
};
// Returns the bytes that the ledger counts as memory of this process's first context on the device,
// but that belong to other processes: they were in use when the context was made.
//
// `ImplicitBytes`: the device's numbers in the ledger. `DeviceShares`: the device's used bytes.
// Bytes count only if two figures prove them, the used bytes and NVML's bytes of this process. One
// figure is not enough, since other processes may have taken or freed memory between the readings.
// Returns 0 if the first context's size is unknown (more than ImplicitBytes::largest_context), or
// if nothing would be left of it.
std::uint64_t counted_with_context(const ledger::ImplicitBytes&, const DeviceShares&) noexcept;
// Subtracts `bytes`, which other processes have, from those that the ledger counts as memory of
// this process's first context on the device. `ImplicitBytes`: the device's numbers in the ledger.
// `bytes`: less than the first context has; 0: does nothing.
void subtract_from_context(ledger::Writer&, DeviceOrdinal, const ledger::ImplicitBytes&,
                           std::uint64_t bytes) noexcept;

// Asks NVML how many bytes of each device other processes hold, and writes the answers to the
// ledger. Subtracts bytes of other processes that the ledger counts as memory of this process's
// first context on the device. To be called when the process ends, after the devices were read for
// the last time.
//
// `moving`: bit N is set if the used memory of the device with the ordinal N was changing, so that
// NVML's list and the last reading are not of one moment. On such a device, all that is in use
// beyond this process's own bytes counts as memory of other processes. This holds if NVML tells the
// own bytes, and other processes have or had memory there.
//
// Looks only at devices that were read at the exit, and asks only for those with more than
// hidden_by_a_context (1 GiB) in use beyond what this process's records explain. For the others, an
// earlier figure of other processes' bytes becomes 0. Calls may_ask() before it asks about a
// device, and leaves the device out if may_ask() returns false. Returns true if NVML has told for
// some device what other processes hold.
bool note_others_at_exit(ledger::Writer&, const FunctionRef<bool()>& may_ask,
                         std::uint64_t moving) noexcept;

}  // namespace cuwarden::shim
