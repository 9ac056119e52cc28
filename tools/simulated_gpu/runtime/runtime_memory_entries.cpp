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

cudaError_t cudaMallocHost(void** pointer, size_t size) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  return forward(DRIVER(cuMemHostAlloc), pointer, size, 0);
}

cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned int flags) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  return forward(DRIVER(cuMemHostAlloc), pointer, size, flags);
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

}  // namespace entry
}  // namespace cuwarden::simulated_runtime
