// A thread's current context and the device of that context.
#pragma once

#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::tracking {

struct CurrentContext {
  ContextId context;                 // 0: the thread has no current context
  DeviceOrdinal device = no_device;  // no_device: no context, or the driver does not say
};

}  // namespace cuwarden::tracking
