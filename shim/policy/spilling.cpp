#include "shim/policy/spilling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "shim/probes/host_limits.hpp"

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
  // With the pool off nothing is spilled, so no host memory is shown as free.
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

}  // namespace cuwarden::shim
