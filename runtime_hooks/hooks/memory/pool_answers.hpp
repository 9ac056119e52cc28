// Corrects the driver's answers about addresses of cuwarden's pool. To the program, a block of the
// pool is an allocation of its own; the driver does not know that. Each function takes the driver's
// answer and the call's parameters, and returns the result for the program. The functions are
// called only while `serving::answers_differ` is true.
#pragma once

#include "runtime_hooks/serving/serving_pools.hpp"

namespace cuwarden::hooks {

// Declares a function name_of_pool() for each QUERY row of hooks.def, which are driver functions
// that describe memory. Each takes the driver's own functions (`real`), cuwarden's pools, the
// driver's result (`answer`) and the parameters of the driver's function. For an address of memory
// that cuwarden served, it corrects the result and the values that the driver has written to the
// program's memory. The one for cuMemGetInfo_v2 adds the pool's unused memory, and host memory that
// counts as the device's. Returns the result for the program: `answer` if nothing is to be
// corrected.
#define QUERY(result, name, parameters, arguments) \
  result name##_of_pool CUWARDEN_WITH_ANSWER parameters;
// The parameters of a function name_of_pool(): the driver's own functions, cuwarden's pools, the
// driver's result, and the parameters of the driver's function.
#define CUWARDEN_WITH_ANSWER(...)                                                 \
  (const driver::RealDriver& real, serving::ServingPools& pools, CUresult answer, \
   __VA_ARGS__) noexcept
#include "runtime_hooks/driver/hooks.def"
#undef CUWARDEN_WITH_ANSWER

}  // namespace cuwarden::hooks
