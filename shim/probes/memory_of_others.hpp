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

// Bytes of a device that are in use, but that the records of this process do not explain. Up to
// this amount NVML is not asked for other processes: a context and its code may take that much.
inline constexpr std::int64_t hidden_by_a_context = std::int64_t{1} << 30;

// Asks NVML for the bytes of the device that other processes hold. If the bytes of some of them are
// not known, returns the sum of the others; null if nothing is known. Calls visit(pid, bytes) for
// each process that certainly is not the calling process; `bytes` is ledger::unknown_bytes if NVML
// does not tell them.
std::optional<std::uint64_t> bytes_of_others(const ledger::DeviceView&,
                                             FunctionRef<void(std::uint32_t, std::uint64_t)> visit);

// Writes to the ledger, for each device, the bytes that other processes hold, as NVML says. To be
// called when the process ends, after the devices were read for the last time. Asks NVML about a
// device only if more than hidden_by_a_context bytes are unexplained and may_ask() returns true.
void note_others_at_exit(ledger::Writer&, const FunctionRef<bool()>& may_ask) noexcept;

}  // namespace cuwarden::shim
