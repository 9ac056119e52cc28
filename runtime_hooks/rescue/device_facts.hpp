// Facts about a device that are found when a request is refused.
#pragma once

#include "runtime_hooks/rescue/incident.hpp"
#include "runtime_hooks/rescue/rungs/parts.hpp"

namespace cuwarden::rescue {

// Adds to the incident facts about the refused request's device: its size, free bytes, and spilled
// bytes (in host memory); the unused bytes of CUDA's memory pools and of cuwarden's pool; PyTorch's
// reserved and allocated bytes. Also notes if the device shares its memory with the host. If the
// device is not that of the thread's current context, leaves out the free, spilled and unused
// bytes. To read the free bytes, a context of the device would have to be made current, and another
// thread may be ending that context. If the request asked for a context, adds the device's compute
// mode, unless it is the default one. Adds no memory facts for host memory.
void add_device_facts(const Parts&, Incident&) noexcept;

}  // namespace cuwarden::rescue
