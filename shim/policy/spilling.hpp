// The limits of spilling: host memory that stands behind device pointers, for requests that the
// device has no room for.
#pragma once

#include "runtime_hooks/pool/spill.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Returns how much host memory spilled requests may use together, by CUWARDEN_SPILL. A percentage
// is one of the machine's RAM. All limits are 0 (no spilling) with CUWARDEN_POOL=off, or if the RAM
// is unknown and CUWARDEN_SPILL is a percentage.
pool::SpillSettings spill_settings(const Settings&) noexcept;

}  // namespace cuwarden::shim
