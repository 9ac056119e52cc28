// Memory of a device that other processes hold. NVML, which alone knows, is loaded into the process
// for the answer. So it is asked only if another process seems to be there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::shim {

// Unexplained memory of a device, in bytes, up to which other processes are not searched for: a
// context and its code may take that much.
inline constexpr std::int64_t hidden_by_a_context = std::int64_t{1} << 30;

// Returns the bytes that other processes have on the device; null if they are not known. Calls
// visit(pid, bytes) for each process that certainly is another one; `bytes` is
// ledger::unknown_bytes if NVML does not tell them.
std::optional<std::uint64_t> bytes_of_others(
    const ledger::DeviceView&, const std::function<void(std::uint32_t, std::uint64_t)>& visit);

// Notes the other processes on each device in the ledger, at the end of the process, after the last
// reading of the devices. Calls `may_ask` before each question to NVML, and ends once `may_ask`
// returns false.
void note_others_at_exit(ledger::Writer&, const FunctionRef<bool()>& may_ask) noexcept;

}  // namespace cuwarden::shim
