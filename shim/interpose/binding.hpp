// Finds the functions to which the loader would have bound a module's calls of CUDA without the
// shim. Looks at the startup objects, the module and the libraries that it needs. A library that
// was opened by dlopen and defines CUDA functions itself stands in front of CUDA for its own calls.
#pragma once

#include <cstdint>

#include "runtime_hooks/driver/real_functions.hpp"
#include "shim/support/loaded_objects.hpp"

namespace cuwarden::shim {

// Facts about the CUDA functions that libraries define which were opened by dlopen and that are no
// CUDA libraries, for the calls of one module.
struct OpenedDefinitions {
  // True if the calling module is such a library and its calls by name reach its own functions of
  // the runtime (cudaFree and others), or of the driver (cuMemFree_v2 and others).
  bool callers_runtime = false, callers_driver = false;
  // The cudaFree and cuMemFree_v2 of the global scope; null: it has none, or no opened library
  // defines the function.
  const void *global_runtime = nullptr, *global_driver = nullptr;
};
// Finds what opened libraries define, for a call from the module that contains the code address
// `address`. To be called without the loader's list held. May change dlerror().
OpenedDefinitions opened_definitions(std::uintptr_t address);

// Runtime functions for the calls of one module; a null slot: no object defines the function.
struct RuntimeBinding {
  driver::RealRuntime next{};    // functions that the loader would have bound, perhaps a wrapper's
  driver::RealRuntime bottom{};  // functions of the cudart itself, for a wrapper that calls by name
};
// Returns the runtime functions for the module `caller`; one that converts to false stands for code
// in no module. `OpenedDefinitions`: result of opened_definitions() for the module. To be called
// with the loader's list held (with_loaded_objects_held).
RuntimeBinding runtime_binding(const LoadedObject& caller, const OpenedDefinitions&);
// Returns the library whose driver functions the calls of the module `caller` reach. Converts to
// false if they reach those of the whole process (next_driver()). Arguments and lock as for
// runtime_binding().
LoadedObject driver_wrapper_for(const LoadedObject& caller, const OpenedDefinitions&);
// Returns the cudaRuntimeGetVersion of the runtime that the module `caller` needs or contains, or
// else of the first one in the process; null if there is none. To be called with the loader's list
// held.
void* runtime_version_function_for(const LoadedObject& caller);

}  // namespace cuwarden::shim
