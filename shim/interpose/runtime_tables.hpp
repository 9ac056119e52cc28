// The CUDA runtimes (libcudart) of this process: there may be several, such as a framework's and a
// library's. A call of cudaMalloc that reaches the shim's hook goes on to the right one. That is
// the runtime to which the loader would have bound the calling module without the shim.
#pragma once

#include "runtime_hooks/driver/hook_list.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::shim {

// Returns the table of runtime functions that a call of a hook goes on to: those of the libcudart
// that the calling module would use without the shim. `return_address`: return address of the call,
// which tells the calling module. `row`: the called function. A slot is null if no object of the
// process defines the function. The table may hold a wrapper of another library; if that wrapper
// calls the hook again, the second call gets the functions of the libcudart itself.
const driver::RealRuntime& real_runtime_for(const void* return_address, driver::Row row);

// Drops what real_runtime_for() has stored about calling modules that were unloaded, or whose
// libcudart was unloaded. To be called after a dlclose that unloaded an object.
void forget_callers_of_runtime();

// Returns the version of the libcudart that the program called first, such as 13000 for 13.0; 0 if
// it has called none.
int runtime_version();

}  // namespace cuwarden::shim
