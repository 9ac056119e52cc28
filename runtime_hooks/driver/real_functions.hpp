// The real entry points below the hooks, one slot a row. A slot is null where the driver (or
// cudart) in this process has no such function.
#pragma once

#include "runtime_hooks/driver/cuda_api.hpp"

namespace cuwarden::driver {

// Pointers to libcuda's functions; null for functions that this driver does not have.
struct RealDriver {
#define HOOK(result, name, parameters, arguments) result(CUDAAPI* name) parameters = nullptr;
#define COUNT HOOK
#define LAUNCH HOOK
#define QUERY HOOK
#define SUBMIT HOOK
#define WAIT HOOK
#define SHIM HOOK
#define USE HOOK
#include "runtime_hooks/driver/hooks.def"
};

// Pointers to the functions of one libcudart; a process may have several.
struct RealRuntime {
#define RUNTIME(result, name, parameters, arguments) result(CUDARTAPI* name) parameters = nullptr;
#include "runtime_hooks/driver/hooks.def"
};

}  // namespace cuwarden::driver
