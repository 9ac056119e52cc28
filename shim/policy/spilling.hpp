// Host memory for requests that the device has no room for.
#pragma once

#include "runtime_hooks/pool/spill.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Returns how much host memory requests may use, by CUWARDEN_SPILL and the host's RAM.
pool::SpillSettings spill_settings(const Settings&) noexcept;

}  // namespace cuwarden::shim
