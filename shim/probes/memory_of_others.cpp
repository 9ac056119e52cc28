#include "shim/probes/memory_of_others.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "reporters/model/each_row.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "shim/probes/nvml_processes.hpp"
#include "shim/support/log.hpp"

namespace cuwarden::shim {
namespace {

constexpr std::size_t most_other_processes = 64;
static_assert(DeviceProcess::unknown == ledger::unknown_value);

}  // namespace

MemoryOfOthers memory_of_others(const ledger::DeviceView& device,
                                FunctionRef<void(std::uint32_t, std::uint64_t)> visit) {
  std::array<DeviceProcess, most_other_processes> processes;
  const std::span<const char, 16> uuid(reinterpret_cast<const char*>(device.uuid), 16);
  const DeviceProcesses listed = read_device_processes(uuid, processes);
  if (listed.answer != DeviceProcessesAnswer::listed) {
    log_info(formatted("other processes on GPU {} are not known: {}", device.ordinal.value,
                       text_of(listed.answer)));
    return {{}, {}, 0, listed.file_number};
  }
  std::uint64_t others = 0;
  std::optional<std::uint64_t> own;
  std::uint32_t unmatched = 0;
  bool sure = listed.found <= processes.size();
  for (std::size_t i = 0; i < listed.found && i < processes.size(); ++i) {
    const DeviceProcess& process = processes[i];
    if (process.whose == DeviceProcess::Whose::this_process) {
      if (process.used_bytes != process.unknown) own = process.used_bytes;
      continue;
    }
    if (process.whose == DeviceProcess::Whose::another) visit(process.pid, process.used_bytes);
    if (process.whose == DeviceProcess::Whose::unsure) ++unmatched;
    if (process.whose == DeviceProcess::Whose::unsure || process.used_bytes == process.unknown)
      sure = false;
    else
      others += process.used_bytes;
  }
  return {others != 0 || sure ? std::optional(others) : std::nullopt, own, unmatched,
          listed.file_number};
}

std::uint64_t counted_with_context(const ledger::ImplicitBytes& implicit,
                                   const DeviceShares& shares) noexcept {
  const std::uint64_t first = implicit.used_after_first_context;
  const auto twice = static_cast<std::int64_t>(shares.others) - shares.unexplained;
  const std::uint64_t of_context = shares.own - std::min(shares.own, shares.recorded);
  if (first > ledger::ImplicitBytes::largest_context || twice <= 0 || of_context >= first) return 0;
  const std::uint64_t bytes =
      std::min({static_cast<std::uint64_t>(twice), shares.others, first - of_context});
  return bytes < first ? bytes : 0;
}

void subtract_from_context(ledger::Writer& ledger, DeviceOrdinal device,
                           const ledger::ImplicitBytes& implicit, std::uint64_t bytes) noexcept {
  const std::uint64_t first = implicit.used_after_first_context;
  if (bytes != 0)
    ledger.devices.change_implicit(device, {.used_after_first_context_bytes = first - bytes});
}

namespace {

// Does the work of note_others_at_exit() for one device.
bool note_others_on(ledger::Writer& ledger, const ledger::DeviceView& device,
                    const FunctionRef<bool()>& may_ask, bool is_moving) {
  if (device.at != ledger::ReadingAt::exit || device.total_bytes < device.free_bytes) return false;
  const std::uint64_t own = ledger.totals.live_bytes_on(device.ordinal) +
                            device.memory_pool_idle_bytes.value_or(0) +
                            device.implicit.beside_first_context();
  const std::uint64_t used = device.total_bytes - device.free_bytes;
  if (static_cast<std::int64_t>(used - own) <= hidden_by_a_context) {
    // Other processes that held some at an earlier reading are gone.
    if (device.other_processes_bytes != 0)
      ledger.devices.set_other_processes(device.ordinal, ByteCount{0});
    return false;
  }
  if (!may_ask()) return false;
  MemoryOfOthers found = memory_of_others(device, [](auto, auto) {});
  if (!found.bytes) return false;
  const bool had_others = *found.bytes != 0 || device.other_processes_bytes != 0;
  if (is_moving && had_others && found.own_bytes)
    found.bytes = used - std::min(used, *found.own_bytes);
  ledger.devices.set_other_processes(device.ordinal, ByteCount{*found.bytes});
  if (!found.own_bytes) return true;
  const std::uint64_t opened = ledger.totals.live_bytes_on(device.ordinal, Kind::imported);
  const std::uint64_t recorded = own - std::min(own, device.spilled_bytes);
  const DeviceShares shares{.unexplained = static_cast<std::int64_t>(
                                used - recorded - device.implicit.used_after_first_context),
                            .others = *found.bytes - std::min(*found.bytes, opened),
                            .own = *found.own_bytes,
                            .recorded = recorded - std::min(recorded, opened)};
  subtract_from_context(ledger, device.ordinal, device.implicit,
                        counted_with_context(device.implicit, shares));
  return true;
}

}  // namespace

bool note_others_at_exit(ledger::Writer& ledger, const FunctionRef<bool()>& may_ask,
                         std::uint64_t moving) noexcept try {
  ledger::ReadError error;
  const auto reader = ledger::Reader::open(ledger.file.bytes(), error);
  bool any = false;
  const auto is_moving = [moving](DeviceOrdinal device) {
    return device.value >= 0 && device.value < 64 && (moving >> device.value & 1) != 0;
  };
  if (reader)
    each_row(*reader, ledger::RegionId::devices, &ledger::Reader::device,
             [&](const ledger::DeviceView& device) {
               any = note_others_on(ledger, device, may_ask, is_moving(device.ordinal)) || any;
             });
  return any;
} catch (...) {
  return false;  // without memory for the list, the bytes stay unexplained
}

}  // namespace cuwarden::shim
