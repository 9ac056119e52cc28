// Modules, libraries and kernels of the simulated driver. No code is executed. Any image can be
// loaded. A kernel or a variable is made when the program first asks for it by name. If the image
// is PTX text, only kernels that the text declares can be found; otherwise any name is found.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tools/simulated_gpu/device/ptx.hpp"
#include "tools/simulated_gpu/device/state.hpp"

namespace cuwarden::simulated_gpu {

struct Module;

// A kernel. Its handle, a CUfunction or CUkernel, is its address.
struct Kernel {
  Module* module = nullptr;  // The module or library that contains the kernel.
  std::string name;
  // Bytes of local memory that a thread of the kernel needs: from the PTX text, or from
  // CUWARDEN_SIM_LOCAL_MEMORY.
  std::size_t local_bytes = 0;
  bool uses_heap = false;  // True if the kernel calls the device-side malloc.
  // Values of two function attributes (cuFuncSetAttribute): most bytes of dynamic shared memory for
  // a launch, and the preferred share of shared memory in percent; -1: the driver's choice.
  int dynamic_shared_limit = 49152 - 1024;
  int preferred_carveout = -1;
};

// A module (CUmodule), which belongs to one context, or a library (CUlibrary), which serves all
// contexts. The handle is the object's address.
struct Module {
  Context* context = nullptr;  // Null for a library.
  bool library = false;        // True for a library.
  bool unloaded = false;
  std::optional<PtxCode> ptx;  // The parsed image; none if the image was not PTX text.
  // Bytes of the device that the context was charged for the variables that the PTX text declares.
  std::size_t charged_bytes = 0;
  std::map<std::string, Kernel*> kernels;  // Kernels that were asked for, by name.
  // Device addresses of variables that were asked for, by context and name. Each has 64 KiB,
  // whatever size the program declares.
  std::map<std::pair<Context*, std::string>, CUdeviceptr> variables;
};

// Unloads all modules of a context that ends. Libraries stay, but forget the addresses of their
// variables in this context.
void unload_modules(Context& context);
// Returns all modules and libraries of the process.
Handles<Module>& modules();
// Returns all kernels that the program has asked for by name, of all modules and libraries.
Handles<Kernel>& kernels();

}  // namespace cuwarden::simulated_gpu
