// Loaded code. Nothing is executed. Kernels and variables come into being when they are first asked
// for by name; if the image is PTX text, only kernels that it declares do.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tools/simulated_gpu/device/ptx.hpp"
#include "tools/simulated_gpu/device/state.hpp"

namespace cuwarden::simulated_gpu {

struct Module;

struct Kernel {
  Module* module = nullptr;
  std::string name;
  // Local memory per thread, from the PTX or from CUWARDEN_SIM_LOCAL_MEMORY.
  std::size_t local_bytes = 0;
  bool uses_heap = false;
  int dynamic_shared_limit = 49152 - 1024;
  int preferred_carveout = -1;
};

// A module, owned by a context, or a library, which serves every context and has a null `context`.
struct Module {
  Context* context = nullptr;
  bool library = false;
  bool unloaded = false;
  std::optional<PtxCode> ptx;     // The parsed image; none if it was not PTX text.
  std::size_t charged_bytes = 0;  // Bytes that the context was charged for variables.
  std::map<std::string, Kernel*> kernels;
  // Addresses of variables, by context and name. All have the same size, whatever the program
  // believes.
  std::map<std::pair<Context*, std::string>, CUdeviceptr> variables;
};

// Unloads the modules of a context that ends.
void unload_modules(Context& context);
Handles<Module>& modules();
Handles<Kernel>& kernels();

}  // namespace cuwarden::simulated_gpu
