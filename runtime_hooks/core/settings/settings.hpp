// The settings of cuwarden (environment variables CUWARDEN_*), as all parts of the shim get them.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/settings/setting_types.hpp"

namespace cuwarden {

// The values of all settings, a member for each row of settings.def. All are zero until
// shim::read_settings() has filled them.
struct Settings {
#define SETTING(member, kind, ...) setting_types::kind member{};
#include "runtime_hooks/core/settings/settings.def"
  // Path of a file to which the shim appends the paths of its ledger and report, each with a null
  // byte behind it. If no report is wanted, appends the text no_report_wanted instead of the
  // report's path. `cuwarden run` passes the path in CUWARDEN_REPORT_LIST; empty without `cuwarden
  // run`.
  setting_types::AnyPath report_list{};

  // True if cuwarden tries to serve refused requests at all.
  bool rescues() const noexcept { return pool != PoolMode::off; }
  // True if cuwarden's pool may serve requests in the driver's stead before the driver refuses
  // them.
  bool uses_pool() const noexcept { return pool == PoolMode::on || pool == PoolMode::automatic; }
  // Returns the longest time, in nanoseconds, for which the program may be paused for one refused
  // request, to move the pool's memory (meshing). The pauses for one request share this time. 0:
  // memory is not moved.
  std::uint64_t longest_mesh_pause_ns() const noexcept {
    return mesh.moves && uses_pool() ? mesh_pause_ns : 0;
  }
  // True if refused requests may be served with host memory behind device addresses (spilling).
  bool spills() const noexcept { return rescues() && (spill.bytes != 0 || spill.percent != 0); }
};

}  // namespace cuwarden
