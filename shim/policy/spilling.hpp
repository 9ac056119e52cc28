// Host memory for requests that the device has no room for.
#pragma once

#include <string>

#include "runtime_hooks/pool/spill.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

pool::SpillSettings spill_settings(const Settings&) noexcept;
std::string spill_text(const Settings&);  // as the report has it

}  // namespace cuwarden::shim
