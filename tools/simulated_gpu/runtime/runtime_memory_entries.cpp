// cudaMalloc and its relatives.
#include "tools/simulated_gpu/runtime/runtime_entry.hpp"

namespace cuwarden::simulated_runtime {
namespace {

// An element size with which the driver chooses the widest pitch.
constexpr unsigned kElement = 4;

CUdeviceptr* out(void** pointer) { return reinterpret_cast<CUdeviceptr*>(pointer); }

}  // namespace

namespace entry {

cudaError_t cudaMalloc(void** pointer, size_t size) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  RUNTIME_TRY(ensure_context());
  if (size == 0) {
    *pointer = nullptr;
    return cudaSuccess;
  }
  return error_of(DRIVER(cuMemAlloc_v2)(out(pointer), size));
}

cudaError_t cudaFree(void* pointer) {
  CALL(cuMemFree_v2, device_address(pointer));
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** pointer, size_t size) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  CALL(cuMemHostAlloc, pointer, size, 0);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned int flags) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  CALL(cuMemHostAlloc, pointer, size, flags);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* pointer) {
  CALL(cuMemFreeHost, pointer);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned int flags) {
  CALL(cuMemHostRegister_v2, pointer, size, flags);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer) {
  CALL(cuMemHostUnregister, pointer);
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int flags) {
  CALL(cuMemHostGetDevicePointer_v2, out(device), host, flags);
  return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned int* flags, void* host) {
  CALL(cuMemHostGetFlags, flags, host);
  return cudaSuccess;
}

cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned int flags) {
  CALL(cuMemAllocManaged, out(pointer), size, flags);
  return cudaSuccess;
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  if (pointer == nullptr || pitch == nullptr) return cudaErrorInvalidValue;
  RUNTIME_TRY(ensure_context());
  if (width == 0 || height == 0) {
    *pointer = nullptr;
    *pitch = 0;
    return cudaSuccess;
  }
  return error_of(DRIVER(cuMemAllocPitch_v2)(out(pointer), pitch, width, height, kElement));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr* pitched, struct cudaExtent extent) {
  if (pitched == nullptr) return cudaErrorInvalidValue;
  size_t rows = 0;
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) return cudaErrorMemoryAllocation;
  pitched->xsize = extent.width;
  pitched->ysize = extent.height;
  return entry::cudaMallocPitch(&pitched->ptr, &pitched->pitch, extent.width, rows);
}

cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream) {
  CALL(cuMemAllocAsync, out(pointer), size, stream);
  return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t size, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  CALL(cuMemAllocFromPoolAsync, out(pointer), size, pool, stream);
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  CALL(cuMemFreeAsync, device_address(pointer), stream);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  CALL(cuMemGetInfo_v2, free, total);
  return cudaSuccess;
}

}  // namespace entry
}  // namespace cuwarden::simulated_runtime
