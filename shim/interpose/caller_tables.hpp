// The functions to which a call of one of the shim's exports goes on. They depend on the module
// that calls: a process may have several CUDA runtimes (libcudart), such as a framework's and a
// library's, and a library may define CUDA functions itself (binding.hpp).
#pragma once

#include "runtime_hooks/driver/hook_list.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::shim {

// Returns the table of runtime functions that a call of a hook goes on to: those of a libcudart, or
// of a library that wraps it. `return_address`: return address of the program's call, which tells
// the calling module. `row`: the called function. A slot is null if no object of the process
// defines the function. If a wrapper calls the hook again by name, the second call gets the
// functions of the libcudart itself. The table is valid as long as the module and that libcudart
// stay loaded.
const driver::RealRuntime& next_runtime_for(const void* return_address, driver::Row row);

// Returns the table of driver functions that the calling module would use without the shim: those
// of libcuda, or of a library that wraps it. `return_address`: return address of the program's
// call, which tells the calling module. A slot is null if no library wraps the function and libcuda
// is not loaded or does not define it. The table is valid as long as the module stays loaded.
const driver::RealDriver& next_driver_for(const void* return_address);

// Makes next_runtime_for() and next_driver_for() check, until unloading_ends(), that the module of
// a table is still loaded. During a dlclose another library may come to the module's addresses. To
// be called before each call of libc's dlclose.
void unloading_begins();
// Ends the checks that unloading_begins() began; to be called after each call of libc's dlclose.
// `has_unloaded`: true if an object was unloaded. In that case, drops the tables for the calls of
// unloaded modules, and the tables with functions of an unloaded library.
void unloading_ends(bool has_unloaded);

// Returns the version of a CUDA runtime (libcudart) in this process, as cudaRuntimeGetVersion tells
// it: 13000 for 13.0. Each module that calls a hook has a runtime: its own, or the process's first
// one if it has none. The result is the first version that such a runtime told, and does not change
// later. Returns 0 until a runtime has told one.
int runtime_version();

}  // namespace cuwarden::shim
