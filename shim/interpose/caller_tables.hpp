// The functions to which a call of one of the shim's exports goes on. They depend on the module
// that calls: a process may have several CUDA runtimes (libcudart), such as a framework's and a
// library's, and a library may stand in front of CUDA for some modules only. A call goes on to the
// function to which the loader would have bound the module without the shim.
#pragma once

#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::shim {

// Returns the table of runtime functions that the calling module would use without the shim: those
// of a libcudart, or of a library that wraps it. `return_address`: return address of the program's
// call, which tells the calling module. A slot is null if no object of the process defines the
// function. The table is valid as long as the module and that libcudart stay loaded.
const driver::RealRuntime& next_runtime_for(const void* return_address);

// Returns the table of driver functions that the calling module would use without the shim: those
// of libcuda, or of a library that wraps it. `return_address`: return address of the program's
// call, which tells the calling module. A slot is null if no library wraps the function and libcuda
// is not loaded or does not define it. The table is valid as long as the module stays loaded.
const driver::RealDriver& next_driver_for(const void* return_address);

// Drops the tables of functions that are stored for calling modules which were unloaded, or whose
// libcudart was unloaded. To be called after a dlclose that unloaded an object.
void forget_unloaded_callers();

// Returns the version of the libcudart that the program called first, as cudaRuntimeGetVersion
// tells it: 13000 for 13.0. 0 if the program has called none.
int runtime_version();

}  // namespace cuwarden::shim
