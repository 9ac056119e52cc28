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

// Less than this of a device's used memory is a context and its code.
inline constexpr std::int64_t hidden_by_a_context = std::int64_t{1} << 30;

// Returns the bytes that other processes have on the device; null if they are not known. Calls
// visit(pid, bytes) for each process that certainly is another one; `bytes` is
// ledger::unknown_bytes if NVML does not tell them.
std::optional<std::uint64_t> bytes_of_others(
    const ledger::DeviceView&, const std::function<void(std::uint32_t, std::uint64_t)>& visit);

// After the last reading of the devices.
// Ends once `may_ask`, which is called before NVML is asked about a device, is false.
void note_others_at_exit(ledger::Writer&, const FunctionRef<bool()>& may_ask) noexcept;

}  // namespace cuwarden::shim
