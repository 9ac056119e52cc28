// What the driver says of addresses, corrected where these are the pool's: to the program a range
// is one allocation of the device, and to the driver it is not. Each takes the driver's answer and
// the call's parameters, and returns what the program gets. Called only once there was a range.
#pragma once

#include "runtime_hooks/serving/serving_pools.hpp"

namespace cuwarden::hooks {

// One function for each QUERY row of hooks.def.
#define QUERY(result, name, parameters, arguments) \
  result name##_of_pool CUWARDEN_WITH_ANSWER parameters;
#define CUWARDEN_WITH_ANSWER(...) \
  (serving::ServingPools & pools, CUresult answer, __VA_ARGS__) noexcept
#include "runtime_hooks/driver/hooks.def"
#undef CUWARDEN_WITH_ANSWER

}  // namespace cuwarden::hooks
