// The libcudarts of this process. A call of cudaMalloc that lands in the shim goes on to the one
// that the caller's own module depends on: a process may hold two (a framework's and a library's).
#pragma once

#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::shim {

// The cudart for a call that returns to `return_address`; null where there is none.
const driver::RealRuntime* real_runtime_for(const void* return_address);

// After a dlclose: what is known about callers' modules may be wrong.
void forget_callers_of_runtime();

// As cudaRuntimeGetVersion of the first cudart gives it (13000 for 13.0); 0 where none was used.
int runtime_version();

}  // namespace cuwarden::shim
