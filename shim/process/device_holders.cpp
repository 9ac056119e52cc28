#include "shim/process/device_holders.hpp"

#include <algorithm>
#include <array>

#include "runtime_hooks/core/uncancelled.hpp"
#include "shim/probes/nvml_processes.hpp"
#include "shim/process/seccomp_watch.hpp"
#include "shim/process/stack_room.hpp"

namespace cuwarden::shim {
namespace {

using Whose = DeviceProcess::Whose;

// Returns null if the list was not to be had.
std::optional<tracking::DeviceHolders> holders_of(std::span<const char, 16> uuid) noexcept {
  std::array<DeviceProcess, 64> processes;
  const DeviceProcesses listed = read_device_processes(uuid, processes);
  if (listed.answer != DeviceProcessesAnswer::listed) return std::nullopt;
  const std::span<const DeviceProcess> all =
      std::span(processes).first(std::min<std::size_t>(listed.found, processes.size()));
  tracking::DeviceHolders holders;
  for (const DeviceProcess& process : all) {
    if (process.whose != Whose::this_process) continue;
    holders.has_others = false;
    if (process.used_bytes != DeviceProcess::unknown) holders.own_bytes = process.used_bytes;
  }
  // At most one of several processes that may be this one is it.
  const auto may_be_own = std::ranges::count(all, Whose::unsure, &DeviceProcess::whose);
  if (may_be_own > 1 || std::ranges::count(all, Whose::another, &DeviceProcess::whose) != 0)
    holders.has_others = true;
  return holders;
}

}  // namespace

std::optional<tracking::DeviceHolders> DeviceHolderList::ask(
    std::span<const char, 16> uuid) noexcept {
  if (sites_ == nullptr || is_confined_unnoticed()) return std::nullopt;
  const Uncancelled whole;
  std::optional<tracking::DeviceHolders> found;
  call_with_room(*sites_, [&] { found = holders_of(uuid); });
  return found;
}

}  // namespace cuwarden::shim
