#include "shim/spilling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "reporters/quantities.hpp"
#include "shim/host_limits.hpp"
#include "shim/log.hpp"
#include "shim/pool_use.hpp"

namespace cuwarden::shim {
namespace {

// Page-locked memory is never given back under pressure: who takes the last of it has the process
// killed, or another one.
constexpr std::uint64_t left_to_host_bytes = std::uint64_t{256} << 20;

// The page cache goes before anything is refused: that of the cgroup, too, but for a part that is
// in use.
std::uint64_t host_room() noexcept {
  const HostLimits limits = read_host_memory();
  std::uint64_t room = UINT64_MAX;
  if (limits.ram_available_bytes != HostLimits::unknown) room = limits.ram_available_bytes;
  if (limits.cgroup_limit_bytes != HostLimits::unknown &&
      limits.cgroup_limit_bytes != HostLimits::unlimited &&
      limits.cgroup_used_bytes != HostLimits::unknown) {
    const std::uint64_t cache = limits.cgroup_cache_bytes / 4 * 3;
    const std::uint64_t used = limits.cgroup_used_bytes - std::min(limits.cgroup_used_bytes, cache);
    room = std::min(room, limits.cgroup_limit_bytes - std::min(limits.cgroup_limit_bytes, used));
  }
  return room - std::min(room, left_to_host_bytes);
}

}  // namespace

pool::SpillSettings spill_settings(const Settings& settings) noexcept {
  pool::SpillSettings made{.most_host_bytes = settings.spill.bytes, .host_room = host_room};
  if (settings.spill.percent != 0) {
    const std::uint64_t ram = read_host_memory().ram_bytes;
    made.most_host_bytes = ram == HostLimits::unknown ? 0 : ram / 100 * settings.spill.percent;
  }
  // What is off has nothing to show.
  if (settings.pool == PoolMode::off) made.most_host_bytes = 0;
  // A program that plans by it is not told of what the host does not have.
  if (settings.spill.is_visible) made.visible_bytes = std::min(made.most_host_bytes, host_room());
  return made;
}

std::string spill_text(const Settings& settings) {
  const auto& [bytes, percent, is_visible] = settings.spill;
  const std::string amount = percent != 0        ? fmt::format("{}%", percent)
                             : bytes % 1024 == 0 ? fmt::format("{}KiB", bytes / 1024)
                                                 : fmt::format("{}B", bytes);
  return amount + (is_visible ? ":visible" : "");
}

void say_of_rescue(families::RescueNews news, DeviceOrdinal device, std::uint64_t bytes,
                   std::uint64_t host_bytes) noexcept try {
  using enum families::RescueNews;
  const std::string of =
      "CUWARDEN_SPILL: of " + human_bytes(bytes) + " on GPU " + std::to_string(device.value) + " ";
  const std::string left_apart =
      "CUWARDEN_MESH: " + human_bytes(bytes) + " on GPU " + std::to_string(device.value) +
      " are free parts of the pool's pages, which are not put together: ";
  switch (news) {
    case not_granted:
      return log_warn(
          "GPU " + std::to_string(device.value) +
          " and another one of this process cannot reach each other's memory: copies "
          "between them fail for what CUWARDEN_SPILL and CUWARDEN_POOL served; from now "
          "on CUWARDEN_POOL serves nothing");
    case spilled:
      return log_warn(of + human_bytes(host_bytes) +
                      " lie in the host's memory, which is slower; later ones are not announced");
    case cap_reached:
      return log_warn(of +
                      "too much would lie in the host's memory for what is allowed; the "
                      "request fails");
    case host_is_full:
      return log_warn(of +
                      "too much would lie in the host's memory for what it has left (RAM, or "
                      "the cgroup's limit); the request fails");
    case not_supported:
      return log_warn(of +
                      "nothing can lie in the host's memory: this device or its driver cannot "
                      "map that; requests fail as ever");
    case refused:
      return log_warn(of +
                      "nothing could be put into the host's memory: the driver refused; the "
                      "request fails");
    case lost:
      return log_error("CUWARDEN_MESH: the driver refused to map " + human_bytes(bytes) +
                       " of the program's memory on GPU " + std::to_string(device.value) +
                       " again: what lay there is lost; please report this, and use "
                       "CUWARDEN_MESH=off");
    case memory_has_handle:
      return log_warn(left_apart +
                      "the program had handles made for memory, by which others reach it");
    case library_reaches_memory:
      return log_warn(left_apart + libraries_that_reach_memory() +
                      " may reach it without a call of the driver");
    case unknown_functions:
      return log_warn(left_apart +
                      "the program uses functions of the driver that are newer than cuwarden");
    case pool_not_supported:
      return log_warn("CUWARDEN_POOL=on: GPU " + std::to_string(device.value) +
                      " or its driver cannot map memory: its requests are left to the driver, and "
                      "the pool serves page-locked memory alone");
    case waited_in_vain:
      return log_warn("CUWARDEN_WAIT: room for " + human_bytes(bytes) +
                      (device == no_device ? std::string(" of the host's memory")
                                           : " on GPU " + std::to_string(device.value)) +
                      " did not come in time; the request fails");
    case pool_not_shared:
      return log_warn("CUWARDEN_POOL: an allocation of " + human_bytes(bytes) + " on GPU " +
                      std::to_string(device.value) +
                      " was served by the pool: no other process can open it "
                      "(cuIpcGetMemHandle fails); CUWARDEN_POOL=rescue leaves it to the driver");
    case not_shared:
      return log_warn(of + human_bytes(host_bytes) +
                      " lie in the host's memory: no other process can open it "
                      "(cuIpcGetMemHandle fails)");
  }
} catch (...) {
}  // no memory to say it with

}  // namespace cuwarden::shim
