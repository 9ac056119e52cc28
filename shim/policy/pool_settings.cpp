#include "shim/policy/pool_settings.hpp"

#include <algorithm>

#include "shim/policy/host_process.hpp"
#include "shim/probes/host_limits.hpp"

namespace cuwarden::shim {

serving::PoolUse pool_use(PoolMode mode) noexcept {
  switch (mode) {
    case PoolMode::on:
      return serving::PoolUse::from_start;
    case PoolMode::automatic:
      return serving::PoolUse::when_slabs_lock;
    default:
      return serving::PoolUse::never;
  }
}

std::uint64_t mesh_pause_ns(const Settings& settings) noexcept {
  return settings.mesh.moves && pool_use(settings.pool) != serving::PoolUse::never
             ? settings.mesh_pause_ns
             : 0;
}

pool::SpillSettings spill_settings(const Settings& settings) noexcept {
  pool::SpillSettings made{.most_host_bytes = settings.spill.bytes};
  if (settings.spill.percent != 0) {
    const std::uint64_t ram = read_host_memory().ram_bytes;
    made.most_host_bytes = ram == HostLimits::unknown ? 0 : ram / 100 * settings.spill.percent;
  }
  // With the pool off nothing is spilled, so no host memory is counted as free.
  if (settings.pool == PoolMode::off) made.most_host_bytes = 0;
  // Memory that the host does not have is not counted, because programs plan by this figure.
  if (settings.spill.is_visible)
    made.visible_bytes =
        std::min(made.most_host_bytes, pool::host_memory_for_spilling(this_process));
  return made;
}

}  // namespace cuwarden::shim
