#include "shim/probes/memory_of_others.hpp"

#include <array>
#include <span>

#include "reporters/model/each_row.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "shim/probes/nvml_processes.hpp"
#include "shim/support/log.hpp"

namespace cuwarden::shim {
namespace {

constexpr std::size_t most_processes = 64;
static_assert(DeviceProcess::unknown == ledger::unknown_bytes);

}  // namespace

MemoryOfOthers memory_of_others(const ledger::DeviceView& device,
                                FunctionRef<void(std::uint32_t, std::uint64_t)> visit) {
  std::array<DeviceProcess, most_processes> processes;
  const std::span<const char, 16> uuid(reinterpret_cast<const char*>(device.uuid), 16);
  const DeviceProcesses listed = read_device_processes(uuid, processes);
  if (listed.answer != DeviceProcessesAnswer::listed) {
    log_info(formatted("other processes on GPU {} are not known: {}", device.ordinal.value,
                       text_of(listed.answer)));
    return {{}, 0, listed.file_number};
  }
  std::uint64_t others = 0;
  std::uint32_t unmatched = 0;
  bool sure = listed.found <= processes.size();
  for (std::size_t i = 0; i < listed.found && i < processes.size(); ++i) {
    const DeviceProcess& process = processes[i];
    if (process.whose == DeviceProcess::Whose::this_process) continue;
    if (process.whose == DeviceProcess::Whose::another) visit(process.pid, process.used_bytes);
    if (process.whose == DeviceProcess::Whose::unsure) ++unmatched;
    if (process.whose == DeviceProcess::Whose::unsure || process.used_bytes == process.unknown)
      sure = false;
    else
      others += process.used_bytes;
  }
  return {others != 0 || sure ? std::optional(others) : std::nullopt, unmatched,
          listed.file_number};
}

void note_others_at_exit(ledger::Writer& ledger, const FunctionRef<bool()>& may_ask) noexcept try {
  ledger::ReadError error;
  const auto reader = ledger::Reader::open(ledger.bytes(), error);
  if (!reader) return;
  each_row(*reader, ledger::RegionId::devices, &ledger::Reader::device,
           [&](const ledger::DeviceView& device) {
             if (device.at != ledger::ReadingAt::exit || device.total_bytes < device.free_bytes)
               return;
             const std::uint64_t own = ledger.totals.live_bytes_on(device.ordinal) +
                                       device.memory_pool_idle_bytes.value_or(0) +
                                       device.implicit.beside_first_context();
             const std::uint64_t used = device.total_bytes - device.free_bytes;
             if (static_cast<std::int64_t>(used - own) <= hidden_by_a_context || !may_ask()) return;
             if (const auto bytes = memory_of_others(device, [](auto, auto) {}).bytes)
               ledger.devices.set_other_processes(device.ordinal, ByteCount{*bytes});
           });
} catch (...) {
  // Without memory for the list, the bytes stay unexplained.
}

}  // namespace cuwarden::shim
