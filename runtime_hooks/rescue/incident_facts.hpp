// Facts about a device that the driver tells at the moment of an incident.
#pragma once

#include "runtime_hooks/rescue/incident.hpp"
#include "runtime_hooks/rescue/parts.hpp"

namespace cuwarden::rescue {

// Adds the facts about the memory of the request's device. Adds nothing for host memory. A context
// that is not current is not entered, since another thread may be ending it: then only the size is
// added. Of a refused context, the device's compute mode is added, unless it is the default one.
void add_device_facts(const Parts&, Incident&) noexcept;

}  // namespace cuwarden::rescue
