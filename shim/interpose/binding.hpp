// Finds the functions to which the loader would have bound a module's calls of CUDA without the
// shim. Looks at the startup objects, the module and the libraries that it needs. A library that
// was opened by dlopen and defines CUDA functions itself stands in front of CUDA for its own calls.
#pragma once

#include <cstdint>

#include "runtime_hooks/driver/real_functions.hpp"
#include "shim/support/loaded_objects.hpp"

namespace cuwarden::shim {

// CUDA functions that opened libraries define, for the calls of one module. An opened library was
// loaded by dlopen after the program's start, and contains neither a CUDA runtime nor libcuda.
struct OpenedDefinitions {
  // True if the calling module is an opened library that defines CUDA functions itself, and if its
  // calls by name reach these: functions of the runtime (such as cudaFree), or of the driver (such
  // as cuMemFree_v2).
  bool callers_runtime = false, callers_driver = false;
  // Addresses of cudaFree and cuMemFree_v2 that dlsym(RTLD_NEXT) finds for the shim, in the
  // loader's global scope. Null if it finds no such function, or if no opened library defines it.
  const void *global_runtime = nullptr, *global_driver = nullptr;
};
// Finds the CUDA functions that opened libraries define, for calls from the module that contains
// the code address `address`. Must not be called inside with_loaded_objects_held(). May change
// dlerror().
OpenedDefinitions opened_definitions(std::uintptr_t address);

// Runtime functions for the calls of one module. A slot is null if no object of the process defines
// the function for this module.
struct RuntimeBinding {
  // Runtime functions to which the loader would have bound the module's calls without the shim;
  // some may be another library's wrappers.
  driver::RealRuntime next{};
  // Functions of the libcudart that the module's calls reach in the end, never those of a wrapper.
  // If a wrapper in `next` calls a runtime function by name, that call goes on to them. One
  // exception: for functions that the module, an opened library, defines itself and reaches by
  // name, the slots are equal to those of `next`.
  driver::RealRuntime bottom{};
};
// Returns the runtime functions that the shim calls on behalf of the module `caller`. If the
// calling code is in no module (compiled at run time), `caller` is an object that converts to
// false. `OpenedDefinitions`: result of opened_definitions() for the calling code, from before
// with_loaded_objects_held(). This function is to be called inside with_loaded_objects_held().
RuntimeBinding runtime_binding(const LoadedObject& caller, const OpenedDefinitions&);
// Returns the library that defines driver functions for the calls of the module `caller`: a wrapper
// of libcuda that dlopen loaded. Returns an object that converts to false if the calls go on to the
// functions of next_driver(), as in most modules. If the calling code is in no module, `caller`
// converts to false. `OpenedDefinitions`: result of opened_definitions() for the calling code, from
// before with_loaded_objects_held(). This function is to be called inside
// with_loaded_objects_held().
LoadedObject driver_wrapper_for(const LoadedObject& caller, const OpenedDefinitions&);
// Returns the address of cudaRuntimeGetVersion in the CUDA runtime that the module `caller`
// contains or needs. If the module has no runtime, takes the process's first one in load order.
// Null if no runtime defines the function. To be called inside with_loaded_objects_held().
void* runtime_version_function_for(const LoadedObject& caller);

}  // namespace cuwarden::shim
