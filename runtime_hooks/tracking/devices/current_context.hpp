// A thread's current context and the device of that context.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::tracking {

// A thread's current context and the device of that context.
struct CurrentContext {
  ContextId context;  // 0 if the thread has no current context or the driver does not say.
  DeviceOrdinal device = no_device;  // no_device if there is no context or the driver does not say.
  // LiveContexts::ends() before the driver was asked for the context. The result of
  // DeviceQueries::current_that_served() may have 0 instead.
  std::uint32_t ends = 0;
};

}  // namespace cuwarden::tracking
