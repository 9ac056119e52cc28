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
// not asked about other processes. A context and its code may take as much. At an incident, fewer
// bytes are enough if the size of this process's context is known. NVML is asked all the same if
// the device allows only one process.
inline constexpr std::int64_t hidden_by_a_context = std::int64_t{1} << 30;

// The memory of a device that other processes hold, as NVML lists them.
struct MemoryOfOthers {
  // Sum of the bytes that other processes hold. Leaves out the calling process. Also leaves out a
  // process if NVML does not tell its bytes, if it may be the calling process, or if it is not
  // among the 64 with most memory. Null if NVML cannot list the device's processes. Null, too, if
  // the sum is 0 and processes other than the calling one are left out.
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
// bytes) for each process that certainly is not the calling process; `bytes` is
// ledger::unknown_value if NVML does not tell them.
MemoryOfOthers memory_of_others(const ledger::DeviceView&,
                                FunctionRef<void(std::uint32_t, std::uint64_t)> visit);

// The used bytes of a device, as this process's records and NVML divide them.
struct DeviceShares {
  // Used bytes that neither this process's records nor its contexts explain; below 0 if records and
  // contexts are more than the used bytes.
  std::int64_t unexplained = 0;
  // Bytes of other processes, as NVML lists them, without memory of theirs that this process
  // opened.
  std::uint64_t others = 0;
  // Bytes of this process on the device: as NVML lists them (`own`), and as its records tell,
  // without the bytes of the device's first context, which no record has (`recorded`).
  std::uint64_t own = 0, recorded = 0;
};
// Returns the bytes of other processes that the device's first context (this process's first one
// there) counts as its own, because those processes had them when the context was made.
// `ImplicitBytes`: the device's numbers in the ledger. Both NVML's figure of this process and the
// used bytes must prove them, since the other processes may have moved between the readings.
// Returns 0 if the first context's size is unknown (more than ImplicitBytes::largest_context), or
// if nothing would be left of it.
std::uint64_t counted_with_context(const ledger::ImplicitBytes&, const DeviceShares&) noexcept;
// Subtracts `bytes` of other processes from those of the device's first context (this process's
// first one there) in the ledger. `ImplicitBytes`: the device's numbers in the ledger. `bytes`:
// less than the first context has.
void subtract_from_context(ledger::Writer&, DeviceOrdinal, const ledger::ImplicitBytes&,
                           std::uint64_t bytes) noexcept;

// Asks NVML how many bytes of each device other processes hold, and writes the answers to the
// ledger. Subtracts bytes that this process's first context on the device counts as its own. To be
// called when the process ends, after the devices were read for the last time.
//
// `moving`: a bit, by its ordinal, for each device whose memory does not rest, so that NVML's list
// and the reading are not of one moment. There, others have all that is in use beyond this
// process's own bytes.
//
// Asks only for devices with more than hidden_by_a_context (1 GiB) in use beyond what this
// process's records explain. Calls may_ask() before it asks about such a device, and leaves the
// device out if may_ask() returns false. Returns true if NVML has told what other processes hold of
// some device.
bool note_others_at_exit(ledger::Writer&, const FunctionRef<bool()>& may_ask,
                         std::uint64_t moving) noexcept;

}  // namespace cuwarden::shim
