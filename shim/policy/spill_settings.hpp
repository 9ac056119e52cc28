// Translates the setting CUWARDEN_SPILL into limits of spilling on this host.
#pragma once

#include "runtime_hooks/core/settings/settings.hpp"
#include "runtime_hooks/pool/spill.hpp"

namespace cuwarden::shim {

// Returns the limits of spilling (host memory behind device pointers) by CUWARDEN_SPILL: most bytes
// of host memory for all spilled requests together, and the bytes by which cuMemGetInfo shows each
// device larger. These bytes are 0 without `:visible`, and no more than the host memory that is
// left now. A percentage is one of the machine's RAM. Both are 0 (no spilling) with
// CUWARDEN_SPILL=0 or CUWARDEN_POOL=off, or if the RAM is unknown and CUWARDEN_SPILL is a
// percentage.
pool::SpillSettings spill_settings(const Settings&) noexcept;

}  // namespace cuwarden::shim
