// Loaded code. Nothing is executed; kernels and variables exist by name, at first asking (where the
// image is PTX text, only those kernels that are in it).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tools/simulated_gpu/ptx.hpp"
#include "tools/simulated_gpu/state.hpp"

namespace cuwarden::simulated_gpu {

struct Module;

struct Kernel {
  Module* module = nullptr;
  std::string name;
  std::size_t local_bytes = 0;  // what its PTX or CUWARDEN_SIM_LOCAL_MEMORY says of it
  bool uses_heap = false;
  int dynamic_shared_limit = 49152 - 1024;
  int preferred_carveout = -1;
};

// A module (owned by a context) or a library (context null: for every context).
struct Module {
  Context* context = nullptr;
  bool library = false;
  bool unloaded = false;
  std::optional<PtxCode> ptx;     // where the image was PTX text
  std::size_t charged_bytes = 0;  // the context, for its variables
  std::map<std::string, Kernel*> kernels;
  // Variables by context and name: their size is what the asker believes it to be.
  std::map<std::pair<Context*, std::string>, CUdeviceptr> variables;
};

// Takes the modules of a context that ends.
void unload_modules(Context& context);
Handles<Module>& modules();
Handles<Kernel>& kernels();

}  // namespace cuwarden::simulated_gpu
