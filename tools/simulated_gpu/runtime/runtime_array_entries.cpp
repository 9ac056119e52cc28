// The runtime's entry points for arrays and pointer attributes.
#include "tools/simulated_gpu/runtime/runtime_entry.hpp"

namespace cuwarden::simulated_runtime {
namespace {

cudaError_t shape_of(const cudaChannelFormatDesc* format, cudaExtent extent, unsigned flags,
                     CUDA_ARRAY3D_DESCRIPTOR& shape) {
  if (format == nullptr) return cudaErrorInvalidValue;
  const int bits = format->x;
  unsigned channels = 0;
  for (const int channel : {format->x, format->y, format->z, format->w}) channels += channel > 0;
  shape = {extent.width, extent.height, extent.depth, CU_AD_FORMAT_UNSIGNED_INT8, channels, flags};
  switch (format->f) {
    case cudaChannelFormatKindSigned:
      shape.Format = bits == 8    ? CU_AD_FORMAT_SIGNED_INT8
                     : bits == 16 ? CU_AD_FORMAT_SIGNED_INT16
                                  : CU_AD_FORMAT_SIGNED_INT32;
      break;
    case cudaChannelFormatKindUnsigned:
      shape.Format = bits == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
                     : bits == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
                                  : CU_AD_FORMAT_UNSIGNED_INT32;
      break;
    case cudaChannelFormatKindFloat:
      shape.Format = bits == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
      break;
    default:
      return cudaErrorInvalidChannelDescriptor;
  }
  return bits == 8 || bits == 16 || bits == 32 ? cudaSuccess : cudaErrorInvalidChannelDescriptor;
}

}  // namespace

namespace entry {

cudaError_t cudaMalloc3DArray(cudaArray_t* out, const struct cudaChannelFormatDesc* format,
                              struct cudaExtent extent, unsigned int flags) {
  if (out == nullptr) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  RUNTIME_TRY(shape_of(format, extent, flags, shape));
  return forward(DRIVER(cuArray3DCreate_v2), out, &shape);
}

cudaError_t cudaMallocArray(cudaArray_t* out, const struct cudaChannelFormatDesc* format,
                            size_t width, size_t height, unsigned int flags) {
  return entry::cudaMalloc3DArray(out, format, {width, height, 0}, flags);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* out,
                                     const struct cudaChannelFormatDesc* format,
                                     struct cudaExtent extent, unsigned int levels,
                                     unsigned int flags) {
  if (out == nullptr) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  RUNTIME_TRY(shape_of(format, extent, flags, shape));
  return forward(DRIVER(cuMipmappedArrayCreate), out, &shape, levels);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* out, const void* pointer) {
  if (out == nullptr) return cudaErrorInvalidValue;
  RUNTIME_TRY(ensure_context());
  unsigned type = 0, managed = 0;
  int device = -2;
  CUdeviceptr on_device = 0;
  void* on_host = nullptr;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                 CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* answers[] = {&type, &managed, &device, &on_device, &on_host};
  RUNTIME_TRY(error_of(DRIVER(cuPointerGetAttributes)(5, asked, answers, device_address(pointer))));
  *out = {};
  out->type = managed != 0 ? cudaMemoryTypeManaged : static_cast<cudaMemoryType>(type);
  out->device = type == 0 ? -2 : device;
  out->devicePointer = reinterpret_cast<void*>(on_device);
  out->hostPointer = type == 0 ? const_cast<void*>(pointer) : on_host;
  return cudaSuccess;
}

}  // namespace entry
}  // namespace cuwarden::simulated_runtime
