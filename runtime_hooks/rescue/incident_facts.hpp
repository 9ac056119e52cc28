// Facts about a device that the driver tells at the moment at which a request is refused.
#pragma once

#include "runtime_hooks/rescue/incident.hpp"
#include "runtime_hooks/rescue/parts.hpp"

namespace cuwarden::rescue {

// Adds to the incident (a refused request) facts about the memory of the refused request's device:
// its size, free bytes, spilled bytes (in host memory), and the unused bytes of CUDA's memory pools
// and of cuwarden's pool. Adds nothing for host memory. If the device is not that of the thread's
// current context, adds only its size: another thread may be ending the other context. If the
// request asked for a context, adds the device's compute mode, unless it is the default one.
void add_device_facts(const Parts&, Incident&) noexcept;

}  // namespace cuwarden::rescue
