// Modules, libraries and kernels of the simulated driver. No code is executed. Any image can be
// loaded. A kernel or a variable is made when the program first asks for it by name. If the image
// is PTX text (Module::ptx), only kernels that the text declares can be found; otherwise any name
// is found.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tools/simulated_gpu/device/ptx.hpp"
#include "tools/simulated_gpu/device/state.hpp"

namespace cuwarden::simulated_gpu {

struct Module;

// A kernel. Its handle, a CUfunction or CUkernel, is the object's address.
struct Kernel {
  Module* module = nullptr;  // The module or library that contains the kernel.
  std::string name;
  // Bytes of local memory that each thread of the kernel needs, as CUWARDEN_SIM_LOCAL_MEMORY or
  // else the PTX text says; 0 if neither does.
  std::size_t local_bytes = 0;
  bool uses_heap = false;  // True if the kernel calls the device-side malloc.
  // Most bytes of dynamic shared memory that a launch may ask for (cuFuncSetAttribute).
  int dynamic_shared_limit = 49152 - 1024;
  // Preferred share of shared memory in percent (cuFuncSetAttribute); -1: the driver's choice.
  // Stored, but without effect.
  int preferred_carveout = -1;
};

// A module (CUmodule), which belongs to one context, or a library (CUlibrary), which serves all
// contexts. The handle is the object's address.
struct Module {
  Context* context = nullptr;  // The context of a module; null for a library.
  bool library = false;        // True for a library.
  bool unloaded = false;       // True once the module or library was unloaded.
  // Kernels and variables that the image declares, if it is PTX text in memory or in the file of
  // cuModuleLoad. Null for other images: fat binaries and files of libraries are not read.
  std::optional<PtxCode> ptx;
  // Contexts into which the code is loaded, with the bytes of device memory that were counted there
  // for the variables of the PTX text. A module has one entry, for its own context; a library has
  // one for each context that has used it.
  std::map<Context*, std::size_t> charged_bytes;
  // Kernels that the program has asked for, by name. The table kernels() owns them.
  std::map<std::string, Kernel*> kernels;
  // Device addresses of variables that the program has asked for, by context and name. Each
  // variable has 64 KiB, whatever size the program declares.
  std::map<std::pair<Context*, std::string>, CUdeviceptr> variables;
};

// Loads the code and the variables of a module or library into a context, unless they are loaded
// there already. Returns CUDA_ERROR_OUT_OF_MEMORY if the device has too few free bytes; the
// driver's code for device-side malloc may then have been loaded all the same.
CUresult load_into(Context& context, Module& module);
// Unloads all modules of a context, because the context ends. Libraries stay, but forget the
// addresses of their variables in this context; the caller frees the variables' memory.
void unload_modules(Context& context);
// Returns the table of all modules and libraries of the process. Callers hold Simulator::mutex
// while they use the table.
Handles<Module>& modules();
// Returns the table of the kernels that the program has asked for by name, of all modules and
// libraries. Callers hold Simulator::mutex while they use the table.
Handles<Kernel>& kernels();

}  // namespace cuwarden::simulated_gpu
