// Entry points for modules, libraries and kernels. Any image is accepted. An image of PTX text has
// the kernels that it declares; in any other image, any name is a kernel.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "tools/simulated_gpu/device/modules.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

// Bytes of a variable that is asked for by name. (In PTX text its own size is charged with the
// module, but not looked up.)
constexpr std::size_t kVariableSize = 64 * kKiB;

CUresult load(CUmodule* out, bool image_given, const void* data = nullptr) {
  InContext at;
  SIM_TRY(at.error);
  if (out == nullptr || !image_given) return CUDA_ERROR_INVALID_VALUE;
  auto module = std::make_unique<Module>();
  module->context = at.context;
  if (data != nullptr) module->ptx = read_ptx(data);
  SIM_TRY(load_into(*at.context, *module));
  *out = reinterpret_cast<CUmodule>(modules().add(std::move(module)));
  return CUDA_SUCCESS;
}

CUresult load_library(CUlibrary* out, bool image_given, const void* data = nullptr) {
  Locked at;
  if (out == nullptr || !image_given) return CUDA_ERROR_INVALID_VALUE;
  auto module = std::make_unique<Module>();
  module->library = true;
  if (data != nullptr) module->ptx = read_ptx(data);
  *out = reinterpret_cast<CUlibrary>(modules().add(std::move(module)));
  return CUDA_SUCCESS;
}

CUresult unload(Module* module) {
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (auto& [name, kernel] : module->kernels) kernels().remove(kernel);
  for (auto& [key, address] : module->variables) {
    if (Range* range = simulator().ranges.at(address)) release_range(*range);
  }
  module->variables.clear();
  for (const auto& [context, bytes] : module->charged_bytes) refund_context(*context, bytes);
  module->unloaded = true;
  modules().remove(module);
  return CUDA_SUCCESS;
}

template <typename Handle>
CUresult kernel_of(Handle* out, Module* module, const char* name) {
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr || name == nullptr || *name == '\0') return CUDA_ERROR_INVALID_VALUE;
  if (module->ptx && module->ptx->kernels.count(name) == 0) return CUDA_ERROR_NOT_FOUND;
  Kernel*& kernel = module->kernels[name];
  if (kernel == nullptr) {
    kernel = kernels().add(std::make_unique<Kernel>());
    kernel->module = module;
    kernel->name = name;
    if (module->ptx) {
      const PtxKernel& said = module->ptx->kernels.at(name);
      kernel->local_bytes = said.local_bytes;
      kernel->uses_heap = said.uses_heap;
    }
    for (const LocalMemoryRule& rule : simulator().settings.local_memory) {
      if (kernel->name.find(rule.kernel) != std::string::npos) kernel->local_bytes = rule.bytes;
    }
  }
  *out = reinterpret_cast<Handle>(kernel);
  return CUDA_SUCCESS;
}

CUresult variable_of(CUdeviceptr* out, size_t* size, Module* module, const char* name,
                     Context& context) {
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr || *name == '\0') return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(load_into(context, *module));
  CUdeviceptr& address = module->variables[{&context, name}];
  if (address == 0) {
    Range range;
    range.requested = kVariableSize;
    range.context = &context;
    range.device = context.device;
    range.flags = kArrayMemory;  // The program may not free it.
    range.start = take_linear(context, kVariableSize, range.in_slab, range.held);
    if (range.start == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    std::memset(reinterpret_cast<void*>(range.start), 0, kVariableSize);
    simulator().ranges.insert(range);
    address = range.start;
  }
  if (out != nullptr) *out = address;
  if (size != nullptr) *size = kVariableSize;
  return CUDA_SUCCESS;
}

CUresult attribute_of(int* value, CUfunction_attribute attribute, const Kernel* kernel) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(kernel->local_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 90;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = kernel->dynamic_shared_limit;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = kernel->preferred_carveout;
      return CUDA_SUCCESS;
    default:
      *value = 0;
      return attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult set_attribute(CUfunction_attribute attribute, int value, Kernel* kernel) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value < 0 || value > 232448) return CUDA_ERROR_INVALID_VALUE;
    kernel->dynamic_shared_limit = value;
  } else if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    kernel->preferred_carveout = value;
  }
  return CUDA_SUCCESS;
}

}  // namespace

namespace entry {

CUresult cuModuleLoad(CUmodule* out, const char* path) {
  if (path == nullptr) return load(out, false);
  {
    const InContext at;
    SIM_TRY(at.error);
  }
  // The file is read without the simulator's lock, because it may be a pipe.
  std::ifstream file(path);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::string code(std::istreambuf_iterator<char>(file), {});
  return load(out, true, code.c_str());
}

CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  return load(out, image != nullptr, image);
}

CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned int, CUjit_option*, void**) {
  return load(out, image != nullptr, image);
}

CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) {
  return load(out, image != nullptr);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(InContext&, CUmodule handle) { return unload(modules().find(handle)); }

CUresult cuModuleGetFunction(InContext&, CUfunction* out, CUmodule handle, const char* name) {
  return kernel_of(out, modules().find(handle), name);
}

CUresult cuModuleGetGlobal_v2(InContext& at, CUdeviceptr* out, size_t* size, CUmodule handle,
                              const char* name) {
  return variable_of(out, size, modules().find(handle), name, *at.context);
}

CUresult cuLibraryLoadData(CUlibrary* out, const void* image, CUjit_option*, void**, unsigned int,
                           CUlibraryOption*, void**, unsigned int) {
  return load_library(out, image != nullptr, image);
}

CUresult cuLibraryLoadFromFile(CUlibrary* out, const char* path, CUjit_option*, void**,
                               unsigned int, CUlibraryOption*, void**, unsigned int) {
  return load_library(out, path != nullptr);
}

CUresult cuLibraryUnload(Locked&, CUlibrary handle) { return unload(modules().find(handle)); }

CUresult cuLibraryGetKernel(Locked&, CUkernel* out, CUlibrary handle, const char* name) {
  return kernel_of(out, modules().find(handle), name);
}

CUresult cuLibraryGetModule(InContext& at, CUmodule* out, CUlibrary handle) {
  Module* module = modules().find(handle);
  if (module == nullptr || out == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  SIM_TRY(load_into(*at.context, *module));
  *out = reinterpret_cast<CUmodule>(module);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(InContext& at, CUdeviceptr* out, size_t* size, CUlibrary handle,
                            const char* name) {
  return variable_of(out, size, modules().find(handle), name, *at.context);
}

CUresult cuLibraryGetManaged(InContext& at, CUdeviceptr* out, size_t* size, CUlibrary handle,
                             const char* name) {
  return entry::cuLibraryGetGlobal(at, out, size, handle, name);
}

CUresult cuLibraryGetKernelCount(Locked&, unsigned int* count, CUlibrary handle) {
  const Module* module = modules().find(handle);
  if (module == nullptr || count == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>(module->kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(InContext& at, CUfunction* out, CUkernel handle) {
  Kernel* kernel = kernels().find(handle);
  if (kernel == nullptr || out == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  SIM_TRY(load_into(*at.context, *kernel->module));
  *out = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(Locked&, CUlibrary* out, CUkernel handle) {
  Kernel* kernel = kernels().find(handle);
  if (kernel == nullptr || out == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = reinterpret_cast<CUlibrary>(kernel->module);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(Locked&, const char** name, CUkernel handle) {
  const Kernel* kernel = kernels().find(handle);
  if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *name = kernel->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(Locked& at, const char** name, CUfunction handle) {
  return entry::cuKernelGetName(at, name, reinterpret_cast<CUkernel>(handle));
}

CUresult cuFuncGetModule(Locked& at, CUmodule* out, CUfunction handle) {
  return entry::cuKernelGetLibrary(at, reinterpret_cast<CUlibrary*>(out),
                                   reinterpret_cast<CUkernel>(handle));
}

CUresult cuFuncGetAttribute(Locked&, int* value, CUfunction_attribute attribute,
                            CUfunction handle) {
  return attribute_of(value, attribute, kernels().find(handle));
}

CUresult cuFuncSetAttribute(Locked&, CUfunction handle, CUfunction_attribute attribute, int value) {
  return set_attribute(attribute, value, kernels().find(handle));
}

CUresult cuKernelGetAttribute(Locked&, int* value, CUfunction_attribute attribute, CUkernel handle,
                              CUdevice) {
  return attribute_of(value, attribute, kernels().find(handle));
}

CUresult cuKernelSetAttribute(Locked&, CUfunction_attribute attribute, int value, CUkernel handle,
                              CUdevice) {
  return set_attribute(attribute, value, kernels().find(handle));
}

CUresult cuFuncSetCacheConfig(Locked&, CUfunction handle, CUfunc_cache) {
  return kernels().find(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelSetCacheConfig(Locked&, CUkernel handle, CUfunc_cache, CUdevice) {
  return kernels().find(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncSetSharedMemConfig(Locked&, CUfunction handle, CUsharedconfig) {
  return kernels().find(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncLoad(Locked&, CUfunction handle) {
  return kernels().find(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(Locked&, int* blocks,
                                                              CUfunction handle, int threads,
                                                              size_t, unsigned int) {
  if (kernels().find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (blocks == nullptr || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  *blocks = threads > 1024 ? 0 : std::min(32, 2048 / threads);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(Locked& at, int* blocks, CUfunction handle,
                                                     int threads, size_t shared) {
  return entry::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(at, blocks, handle, threads,
                                                                     shared, 0);
}

CUresult cuOccupancyMaxPotentialBlockSize(Locked&, int* grid, int* block, CUfunction handle,
                                          CUoccupancyB2DSize, size_t, int limit) {
  if (kernels().find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *block = limit > 0 ? std::min(limit, 1024) : 1024;
  *grid = 132 * (2048 / *block);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(Locked&, size_t* bytes, CUfunction handle,
                                                 int blocks, int) {
  if (kernels().find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (bytes == nullptr || blocks <= 0) return CUDA_ERROR_INVALID_VALUE;
  *bytes = 233472 / static_cast<size_t>(blocks) - 1024;
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
