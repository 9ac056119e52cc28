// The real functions of CUDA that the hooks stand in for: a pointer for each row of hooks.def.
#pragma once

#include "runtime_hooks/driver/cuda_api.hpp"

namespace cuwarden::driver {

// Pointers to libcuda's own functions: one for each driver function in hooks.def, the list of
// functions that cuwarden hooks or calls. A pointer is null if the driver in this process does not
// have the function.
struct RealDriver {
#define HOOKED(result, name, parameters, arguments) result(CUDAAPI* name) parameters = nullptr;
#define USE HOOKED
#include "runtime_hooks/driver/hooks.def"
};

// Pointers to the functions of one libcudart: one for each RUNTIME row of hooks.def, the list of
// functions that cuwarden hooks. A pointer is null if this libcudart does not have the function. A
// process may have loaded several libcudarts.
struct RealRuntime {
#define RUNTIME(result, name, parameters, arguments) result(CUDARTAPI* name) parameters = nullptr;
#include "runtime_hooks/driver/hooks.def"
};

}  // namespace cuwarden::driver
