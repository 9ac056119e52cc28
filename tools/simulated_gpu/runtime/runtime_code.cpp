// Registers fat binaries, kernels and variables. Each binary becomes a library of the driver when
// something in it is first needed.
#include "tools/simulated_gpu/runtime/runtime_code.hpp"

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "runtime_entries.hpp"

namespace cuwarden::simulated_runtime {
namespace {

struct Binary {
  const void* image = nullptr;
  CUlibrary library = nullptr;
};

struct Function {
  Binary* binary = nullptr;
  std::string name;
  CUkernel kernel = nullptr;
};

struct Variable {
  Binary* binary = nullptr;
  std::string name;
  size_t size = 0;
};

struct Code {
  std::mutex mutex;
  std::set<Binary*> binaries;
  std::map<const void*, Function> functions;
  std::map<const void*, Variable> variables;
  std::map<Binary*, std::map<void**, size_t>> managed;
  std::set<CUkernel> kernels;
};

Code& code() {
  static auto* const made = new Code;
  return *made;
}

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
constexpr int kNestedLaunches = 16;
thread_local Configuration configurations[kNestedLaunches];
thread_local int configured = 0;

cudaError_t library_of(Binary& binary, CUlibrary& library) {
  if (binary.library == nullptr) {
    RUNTIME_TRY(error_of(DRIVER(cuLibraryLoadData)(&binary.library, binary.image, nullptr, nullptr,
                                                   0, nullptr, nullptr, 0)));
  }
  library = binary.library;
  return cudaSuccess;
}

}  // namespace

cudaError_t find_kernel(const void* function, CUfunction& found) {
  RUNTIME_TRY(ensure_context());
  Code& all = code();
  const std::lock_guard lock(all.mutex);
  CUkernel kernel = nullptr;
  if (all.kernels.count(static_cast<CUkernel>(const_cast<void*>(function))) != 0) {
    kernel = static_cast<CUkernel>(const_cast<void*>(function));
  } else {
    const auto known = all.functions.find(function);
    if (known == all.functions.end()) return cudaErrorInvalidDeviceFunction;
    Function& entry = known->second;
    if (entry.kernel == nullptr) {
      CUlibrary library = nullptr;
      RUNTIME_TRY(library_of(*entry.binary, library));
      RUNTIME_TRY(error_of(DRIVER(cuLibraryGetKernel)(&entry.kernel, library, entry.name.c_str())));
      all.kernels.insert(entry.kernel);
    }
    kernel = entry.kernel;
  }
  return error_of(DRIVER(cuKernelGetFunction)(&found, kernel));
}

cudaError_t find_variable(const void* symbol, CUdeviceptr& address, size_t& size) {
  RUNTIME_TRY(ensure_context());
  Code& all = code();
  const std::lock_guard lock(all.mutex);
  const auto known = all.variables.find(symbol);
  if (known == all.variables.end()) return cudaErrorInvalidSymbol;
  CUlibrary library = nullptr;
  size_t given = 0;
  RUNTIME_TRY(library_of(*known->second.binary, library));
  RUNTIME_TRY(
      error_of(DRIVER(cuLibraryGetGlobal)(&address, &given, library, known->second.name.c_str())));
  size = known->second.size;
  return size <= given ? cudaSuccess : cudaErrorNotSupported;
}

}  // namespace cuwarden::simulated_runtime

using namespace cuwarden::simulated_runtime;

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

SIM_EXPORT void** __cudaRegisterFatBinary(void* image) {
  Code& all = code();
  const std::lock_guard lock(all.mutex);
  auto* binary = new Binary{image, nullptr};
  all.binaries.insert(binary);
  return reinterpret_cast<void**>(binary);
}

SIM_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}

SIM_EXPORT void __cudaUnregisterFatBinary(void** handle) {
  Code& all = code();
  const std::lock_guard lock(all.mutex);
  auto* binary = reinterpret_cast<Binary*>(handle);
  if (all.binaries.erase(binary) == 0) return;
  std::erase_if(all.functions, [&](const auto& f) { return f.second.binary == binary; });
  std::erase_if(all.variables, [&](const auto& v) { return v.second.binary == binary; });
  all.managed.erase(binary);
  if (binary->library != nullptr) DRIVER(cuLibraryUnload)(binary->library);
  delete binary;
}

SIM_EXPORT void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name,
                                       int, uint3*, uint3*, dim3*, dim3*, int*) {
  Code& all = code();
  const std::lock_guard lock(all.mutex);
  all.functions[host] = {reinterpret_cast<Binary*>(handle), name, nullptr};
}

SIM_EXPORT void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int,
                                  size_t size, int, int) {
  Code& all = code();
  const std::lock_guard lock(all.mutex);
  all.variables[host] = {reinterpret_cast<Binary*>(handle), name, size};
}

SIM_EXPORT void __cudaRegisterHostVar(void** handle, const char* name, char* host, size_t size) {
  Code& all = code();
  const std::lock_guard lock(all.mutex);
  all.variables[host] = {reinterpret_cast<Binary*>(handle), name, size};
}

SIM_EXPORT void __cudaRegisterManagedVar(void** handle, void** host, char*, const char*, int,
                                         size_t size, int, int) {
  Code& all = code();
  const std::lock_guard lock(all.mutex);
  all.managed[reinterpret_cast<Binary*>(handle)][host] = size;
}

// Gives the binary's __managed__ variables their memory. Returns 1 on success, 0 on failure.
SIM_EXPORT char __cudaInitModule(void** handle) {
  std::map<void**, size_t> wanted;
  {
    Code& all = code();
    const std::lock_guard lock(all.mutex);
    const auto known = all.managed.find(reinterpret_cast<Binary*>(handle));
    if (known == all.managed.end()) return 1;
    wanted.swap(known->second);
  }
  if (ensure_context() != cudaSuccess) return 0;
  for (const auto& [host, size] : wanted) {
    if (DRIVER(cuMemAllocManaged)(reinterpret_cast<CUdeviceptr*>(host), size,
                                  CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS)
      return 0;
  }
  return 1;
}

SIM_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                void* stream) {
  if (configured == kNestedLaunches) return cudaErrorInvalidConfiguration;
  configurations[configured++] = {grid, block, shared, static_cast<cudaStream_t>(stream)};
  return 0;
}

SIM_EXPORT cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared,
                                                  void* stream) {
  if (configured == 0) return cudaErrorMissingConfiguration;
  const Configuration& top = configurations[--configured];
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

SIM_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  CUfunction found = nullptr;
  const cudaError_t error = find_kernel(function, found);
  if (error != cudaSuccess) return record(error);
  Code& all = code();
  const std::lock_guard lock(all.mutex);
  *kernel = reinterpret_cast<cudaKernel_t>(all.functions[function].kernel);
  return cudaSuccess;
}

SIM_EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                          void** arguments, size_t shared, cudaStream_t stream) {
  const PerThreadDefault scope(false);
  return record(entry::cudaLaunchKernel(kernel, grid, block, arguments, shared, stream));
}

SIM_EXPORT cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
                                               void** arguments, size_t shared,
                                               cudaStream_t stream) {
  const PerThreadDefault scope(true);
  return record(entry::cudaLaunchKernel(kernel, grid, block, arguments, shared, stream));
}
