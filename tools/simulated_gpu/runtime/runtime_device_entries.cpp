// The runtime's entry points for devices, versions, errors, and the end of contexts.

#include "tools/simulated_gpu/runtime/runtime_entry.hpp"

namespace cuwarden::simulated_runtime::entry {

cudaError_t cudaGetLastError() { return last_error(true); }

cudaError_t cudaPeekAtLastError() { return last_error(false); }

cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return cudaErrorInvalidValue;
  *version = 0;  // 0 stands for no driver.
  if (query_driver("cuDriverGetVersion", 2020, false) == nullptr) return cudaSuccess;
  return error_of(DRIVER(cuDriverGetVersion)(version));
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return cudaErrorInvalidValue;
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return cudaErrorInvalidValue;
  *count = 0;
  RUNTIME_TRY(initialise());
  return error_of(DRIVER(cuDeviceGetCount)(count));
}

cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return cudaErrorInvalidValue;
  RUNTIME_TRY(initialise());
  CUcontext current = nullptr;
  CUdevice of_context = 0;
  *device = thread_device();
  if (DRIVER(cuCtxGetCurrent)(&current) == CUDA_SUCCESS && current != nullptr &&
      DRIVER(cuCtxGetDevice)(&of_context) == CUDA_SUCCESS) {
    *device = of_context;
  }
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) { return set_thread_device(device, true); }

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags) {
  RUNTIME_TRY(initialise());
  if (flags & cudaInitDeviceFlagsAreValid) {
    RUNTIME_TRY(error_of(DRIVER(cuDevicePrimaryCtxSetFlags_v2)(device, device_flags)));
  }
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  RUNTIME_TRY(initialise());
  return error_of(DRIVER(cuDevicePrimaryCtxSetFlags_v2)(thread_device(), flags & ~0x8u));
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  if (flags == nullptr) return cudaErrorInvalidValue;
  RUNTIME_TRY(forward(DRIVER(cuCtxGetFlags), flags));
  *flags |= cudaDeviceMapHost;
  return cudaSuccess;
}

cudaError_t cudaDeviceReset() {
  RUNTIME_TRY(initialise());
  const int device = thread_device();
  RUNTIME_TRY(error_of(DRIVER(cuDevicePrimaryCtxReset_v2)(device)));
  forget_primary(device);
  last_error(true);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device) {
  RUNTIME_TRY(initialise());
  return error_of(
      DRIVER(cuDeviceGetAttribute)(value, static_cast<CUdevice_attribute>(attribute), device));
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  RUNTIME_TRY(initialise());
  return error_of(DRIVER(cuDeviceGetPCIBusId)(text, length, device));
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  RUNTIME_TRY(initialise());
  return error_of(DRIVER(cuDeviceGetByPCIBusId)(device, text));
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  RUNTIME_TRY(initialise());
  return error_of(DRIVER(cuDeviceCanAccessPeer)(can, device, peer));
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  RUNTIME_TRY(ensure_context());
  CUcontext context = nullptr;
  RUNTIME_TRY(error_of(DRIVER(cuDevicePrimaryCtxRetain)(&context, peer)));
  return error_of(DRIVER(cuCtxEnablePeerAccess)(context, flags));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  RUNTIME_TRY(ensure_context());
  CUcontext context = nullptr;
  RUNTIME_TRY(error_of(DRIVER(cuDevicePrimaryCtxRetain)(&context, peer)));
  const CUresult result = DRIVER(cuCtxDisablePeerAccess)(context);
  DRIVER(cuDevicePrimaryCtxRelease_v2)(peer);
  return error_of(result);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return cudaErrorInvalidValue;
  RUNTIME_TRY(initialise());
  cudaDeviceProp made{};
  size_t total = 0;
  RUNTIME_TRY(error_of(DRIVER(cuDeviceGetName)(made.name, sizeof made.name, device)));
  RUNTIME_TRY(error_of(DRIVER(cuDeviceGetUuid_v2)(&made.uuid, device)));
  RUNTIME_TRY(error_of(DRIVER(cuDeviceTotalMem_v2)(&total, device)));
  made.totalGlobalMem = total;
  const auto attribute = [&](CUdevice_attribute id) {
    int value = 0;
    DRIVER(cuDeviceGetAttribute)(&value, id, device);
    return value;
  };
  const auto size = [&](CUdevice_attribute id) { return static_cast<size_t>(attribute(id)); };
  made.sharedMemPerBlock = size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  made.regsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  made.warpSize = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  made.memPitch = size(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  made.maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  made.maxThreadsDim[0] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  made.maxThreadsDim[1] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  made.maxThreadsDim[2] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  made.maxGridSize[0] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  made.maxGridSize[1] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  made.maxGridSize[2] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  made.totalConstMem = size(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  made.major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  made.minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  made.textureAlignment = size(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  made.texturePitchAlignment = size(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
  made.multiProcessorCount = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  made.canMapHostMemory = attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
  made.concurrentKernels = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
  made.ECCEnabled = attribute(CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
  made.pciBusID = attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  made.pciDeviceID = attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
  made.pciDomainID = attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  made.asyncEngineCount = attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  made.unifiedAddressing = attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  made.memoryBusWidth = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  made.l2CacheSize = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  made.maxThreadsPerMultiProcessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  made.streamPrioritiesSupported = attribute(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
  made.sharedMemPerMultiprocessor = size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  made.regsPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  made.managedMemory = attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  made.concurrentManagedAccess = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
  made.pageableMemoryAccess = attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
  made.cooperativeLaunch = attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
  made.sharedMemPerBlockOptin = size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  made.maxBlocksPerMultiProcessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  made.hostRegisterSupported = attribute(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
  made.memoryPoolsSupported = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  made.memoryPoolSupportedHandleTypes =
      static_cast<unsigned>(attribute(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES));
  made.gpuDirectRDMASupported = attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
  made.clusterLaunch = attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
  made.unifiedFunctionPointers = 0;
  *properties = made;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                             unsigned int version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return cudaErrorInvalidValue;
  RUNTIME_TRY(initialise());
  if (flags == cudaEnableDefault && per_thread_default()) flags = cudaEnablePerThreadDefaultStream;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult result =
      DRIVER(cuGetProcAddress_v2)(symbol, function, static_cast<int>(version), flags, &found);
  if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  return result == CUDA_ERROR_NOT_FOUND ? cudaSuccess : error_of(result);
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult* status) {
  return entry::cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}

}  // namespace cuwarden::simulated_runtime::entry
