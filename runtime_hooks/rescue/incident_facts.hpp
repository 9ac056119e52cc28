// Facts about a device that the driver tells at the moment of an incident.
#pragma once

#include "runtime_hooks/rescue/process_means.hpp"

namespace cuwarden::rescue {

// Sets the incident's facts about the device's memory. Does nothing for no_device. A context that
// is not current is not entered, since another thread may be ending it: then only the size is set.
void set_device_facts(const Parts&, IncidentId, DeviceOrdinal) noexcept;

// Sets the device's compute mode as a fact, unless it is the default one.
void set_compute_mode(const Parts&, IncidentId, DeviceOrdinal) noexcept;

}  // namespace cuwarden::rescue
