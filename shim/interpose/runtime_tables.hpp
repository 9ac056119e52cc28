// The libcudarts of this process. A call of cudaMalloc that lands in the shim goes on to the one
// that the caller's own module would have been bound to: a process may hold two (a framework's and
// a library's), and a library of the program may stand in front.
#pragma once

#include "runtime_hooks/driver/hook_list.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::shim {

// Returns the runtime's functions for a call that returns to `return_address`. A slot is null if no
// object of the process defines the function.
const driver::RealRuntime& real_runtime_for(const void* return_address, driver::Row row);

// Forgets the modules that were unloaded; to be called after each dlclose.
void forget_callers_of_runtime();

// Returns the version of the first cudart that the program called, such as 13000 for 13.0; 0 if it
// called none.
int runtime_version();

}  // namespace cuwarden::shim
