// The runtime's entry points for launches and for attributes of kernels, by the host's name for
// them.

#include "tools/simulated_gpu/runtime/runtime_code.hpp"
#include "tools/simulated_gpu/runtime/runtime_entry.hpp"

namespace cuwarden::simulated_runtime::entry {

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared, cudaStream_t stream) {
  CUfunction found = nullptr;
  RUNTIME_TRY(find_kernel(function, found));
  return error_of(DRIVER(cuLaunchKernel)(found, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                         static_cast<unsigned>(shared), stream, arguments,
                                         nullptr));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  if (config == nullptr) return cudaErrorInvalidValue;
  CUfunction found = nullptr;
  RUNTIME_TRY(find_kernel(function, found));
  CUlaunchConfig wide{};
  wide.gridDimX = config->gridDim.x;
  wide.gridDimY = config->gridDim.y;
  wide.gridDimZ = config->gridDim.z;
  wide.blockDimX = config->blockDim.x;
  wide.blockDimY = config->blockDim.y;
  wide.blockDimZ = config->blockDim.z;
  wide.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
  wide.hStream = config->stream;
  return error_of(DRIVER(cuLaunchKernelEx)(&wide, found, arguments, nullptr));
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, size_t shared, cudaStream_t stream) {
  CUfunction found = nullptr;
  RUNTIME_TRY(find_kernel(function, found));
  return error_of(DRIVER(cuLaunchCooperativeKernel)(found, grid.x, grid.y, grid.z, block.x, block.y,
                                                    block.z, static_cast<unsigned>(shared), stream,
                                                    arguments));
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* out, const void* symbol) {
  if (out == nullptr) return cudaErrorInvalidValue;
  return find_kernel(symbol, *out);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* out, const void* function) {
  if (out == nullptr) return cudaErrorInvalidValue;
  CUfunction found = nullptr;
  RUNTIME_TRY(find_kernel(function, found));
  const auto attribute = [&](CUfunction_attribute id) {
    int value = 0;
    DRIVER(cuFuncGetAttribute)(&value, id, found);
    return value;
  };
  *out = {};
  out->sharedSizeBytes = static_cast<size_t>(attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  out->localSizeBytes = static_cast<size_t>(attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  out->maxThreadsPerBlock = attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  out->numRegs = attribute(CU_FUNC_ATTRIBUTE_NUM_REGS);
  out->ptxVersion = attribute(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  out->binaryVersion = attribute(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  out->maxDynamicSharedSizeBytes = attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  out->preferredShmemCarveout = attribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* function, enum cudaFuncAttribute attribute,
                                 int value) {
  CUfunction found = nullptr;
  RUNTIME_TRY(find_kernel(function, found));
  return error_of(
      DRIVER(cuFuncSetAttribute)(found, static_cast<CUfunction_attribute>(attribute), value));
}

cudaError_t cudaFuncSetCacheConfig(const void* function, enum cudaFuncCache config) {
  CUfunction found = nullptr;
  RUNTIME_TRY(find_kernel(function, found));
  return error_of(DRIVER(cuFuncSetCacheConfig)(found, static_cast<CUfunc_cache>(config)));
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  CUfunction found = nullptr;
  RUNTIME_TRY(find_kernel(function, found));
  return error_of(DRIVER(cuFuncGetName)(name, found));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                   const void* function,
                                                                   int threads, size_t shared,
                                                                   unsigned int flags) {
  CUfunction found = nullptr;
  RUNTIME_TRY(find_kernel(function, found));
  return error_of(DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(
      blocks, found, threads, shared, flags));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int threads, size_t shared) {
  return entry::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads,
                                                                       shared, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function,
                                                      int blocks, int threads) {
  CUfunction found = nullptr;
  RUNTIME_TRY(find_kernel(function, found));
  return error_of(DRIVER(cuOccupancyAvailableDynamicSMemPerBlock)(bytes, found, blocks, threads));
}

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr address = 0;
  size_t size = 0;
  RUNTIME_TRY(find_variable(symbol, address, size));
  *pointer = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  if (size == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr address = 0;
  return find_variable(symbol, address, *size);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return forward(DRIVER(cuStreamCreate), stream, 0);
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return forward(DRIVER(cuEventCreate), event, 0); }

cudaError_t cudaProfilerStart() { return ensure_context(); }

cudaError_t cudaProfilerStop() { return ensure_context(); }

}  // namespace cuwarden::simulated_runtime::entry
