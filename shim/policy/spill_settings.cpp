#include "shim/policy/spill_settings.hpp"

#include <algorithm>

#include "shim/policy/host_process.hpp"
#include "shim/probes/host_limits.hpp"

namespace cuwarden::shim {

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
