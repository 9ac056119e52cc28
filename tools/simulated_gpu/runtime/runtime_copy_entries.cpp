// The runtime's entry points for copies and fills.
#include "tools/simulated_gpu/runtime/runtime_code.hpp"
#include "tools/simulated_gpu/runtime/runtime_entry.hpp"

namespace cuwarden::simulated_runtime {
namespace {

cudaError_t copy(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  RUNTIME_TRY(ensure_context());
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return error_of(DRIVER(cuMemcpyHtoD_v2)(device_address(to), from, size));
    case cudaMemcpyDeviceToHost:
      return error_of(DRIVER(cuMemcpyDtoH_v2)(to, device_address(from), size));
    case cudaMemcpyDeviceToDevice:
      return error_of(DRIVER(cuMemcpyDtoD_v2)(device_address(to), device_address(from), size));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return error_of(DRIVER(cuMemcpy)(device_address(to), device_address(from), size));
  }
  return cudaErrorInvalidMemcpyDirection;
}

cudaError_t copy_async(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                       cudaStream_t stream) {
  RUNTIME_TRY(ensure_context());
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return error_of(DRIVER(cuMemcpyHtoDAsync_v2)(device_address(to), from, size, stream));
    case cudaMemcpyDeviceToHost:
      return error_of(DRIVER(cuMemcpyDtoHAsync_v2)(to, device_address(from), size, stream));
    case cudaMemcpyDeviceToDevice:
      return error_of(
          DRIVER(cuMemcpyDtoDAsync_v2)(device_address(to), device_address(from), size, stream));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return error_of(
          DRIVER(cuMemcpyAsync)(device_address(to), device_address(from), size, stream));
  }
  return cudaErrorInvalidMemcpyDirection;
}

CUmemorytype type_of(cudaMemcpyKind kind, bool destination) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return destination ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    case cudaMemcpyDeviceToHost:
      return destination ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    case cudaMemcpyDeviceToDevice:
      return CU_MEMORYTYPE_DEVICE;
    case cudaMemcpyHostToHost:
      return CU_MEMORYTYPE_HOST;
    case cudaMemcpyDefault:
      break;
  }
  return CU_MEMORYTYPE_UNIFIED;
}

void set_source(CUDA_MEMCPY3D& box, CUmemorytype type, const void* pointer, size_t pitch) {
  box.srcMemoryType = type;
  box.srcHost = type == CU_MEMORYTYPE_HOST ? pointer : nullptr;
  box.srcDevice = type == CU_MEMORYTYPE_HOST ? 0 : device_address(pointer);
  box.srcPitch = pitch;
}

void set_target(CUDA_MEMCPY3D& box, CUmemorytype type, void* pointer, size_t pitch) {
  box.dstMemoryType = type;
  box.dstHost = type == CU_MEMORYTYPE_HOST ? pointer : nullptr;
  box.dstDevice = type == CU_MEMORYTYPE_HOST ? 0 : device_address(pointer);
  box.dstPitch = pitch;
}

CUarray array(cudaArray_const_t handle) {
  return reinterpret_cast<CUarray>(const_cast<cudaArray_t>(handle));
}

CUDA_MEMCPY3D flat(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                   size_t height, cudaMemcpyKind kind) {
  CUDA_MEMCPY3D box{};
  set_source(box, type_of(kind, false), from, from_pitch);
  set_target(box, type_of(kind, true), to, to_pitch);
  box.WidthInBytes = width;
  box.Height = height;
  box.Depth = 1;
  return box;
}

// Translates a copy of boxes for the driver. Positions and widths in arrays are counted in
// elements.
cudaError_t deep(const cudaMemcpy3DParms& p, CUDA_MEMCPY3D& box) {
  size_t element = 1;
  for (cudaArray_t handle : {p.srcArray, p.dstArray}) {
    if (handle == nullptr) continue;
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    RUNTIME_TRY(error_of(DRIVER(cuArray3DGetDescriptor_v2)(&shape, array(handle))));
    const bool byte =
        shape.Format == CU_AD_FORMAT_UNSIGNED_INT8 || shape.Format == CU_AD_FORMAT_SIGNED_INT8;
    const bool wide = shape.Format == CU_AD_FORMAT_FLOAT ||
                      shape.Format == CU_AD_FORMAT_SIGNED_INT32 ||
                      shape.Format == CU_AD_FORMAT_UNSIGNED_INT32;
    element = (byte ? 1u : wide ? 4u : 2u) * size_t{shape.NumChannels};
  }
  box = {};
  set_source(box, type_of(p.kind, false), p.srcPtr.ptr, p.srcPtr.pitch);
  set_target(box, type_of(p.kind, true), p.dstPtr.ptr, p.dstPtr.pitch);
  box.srcHeight = p.srcPtr.ysize;
  box.dstHeight = p.dstPtr.ysize;
  if (p.srcArray != nullptr) {
    box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    box.srcArray = array(p.srcArray);
  }
  if (p.dstArray != nullptr) {
    box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    box.dstArray = array(p.dstArray);
  }
  box.srcXInBytes = p.srcPos.x * (p.srcArray != nullptr ? element : 1);
  box.dstXInBytes = p.dstPos.x * (p.dstArray != nullptr ? element : 1);
  box.srcY = p.srcPos.y;
  box.srcZ = p.srcPos.z;
  box.dstY = p.dstPos.y;
  box.dstZ = p.dstPos.z;
  box.WidthInBytes = p.extent.width * element;
  box.Height = p.extent.height;
  box.Depth = p.extent.depth;
  return cudaSuccess;
}

// Finds `size` bytes of a variable of the program, from `offset` on.
cudaError_t find_part(const void* symbol, size_t size, size_t offset, void*& part) {
  CUdeviceptr address = 0;
  size_t whole = 0;
  RUNTIME_TRY(find_variable(symbol, address, whole));
  if (offset > whole || size > whole - offset) return cudaErrorInvalidValue;
  part = reinterpret_cast<void*>(address + offset);
  return cudaSuccess;
}

}  // namespace

namespace entry {

cudaError_t cudaMemcpy(void* to, const void* from, size_t size, enum cudaMemcpyKind kind) {
  return size == 0 ? ensure_context() : copy(to, from, size, kind);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return size == 0 ? ensure_context() : copy_async(to, from, size, kind, stream);
}

cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t size) {
  return copy(to, from, size, cudaMemcpyDefault);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t size,
                                cudaStream_t stream) {
  return copy_async(to, from, size, cudaMemcpyDefault, stream);
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t size, size_t offset,
                               enum cudaMemcpyKind kind) {
  void* part = nullptr;
  RUNTIME_TRY(find_part(symbol, size, offset, part));
  return copy(part, from, size, kind);
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t size, size_t offset,
                                 enum cudaMemcpyKind kind) {
  void* part = nullptr;
  RUNTIME_TRY(find_part(symbol, size, offset, part));
  return copy(to, part, size, kind);
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t size,
                                    size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream) {
  void* part = nullptr;
  RUNTIME_TRY(find_part(symbol, size, offset, part));
  return copy_async(part, from, size, kind, stream);
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t size, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream) {
  void* part = nullptr;
  RUNTIME_TRY(find_part(symbol, size, offset, part));
  return copy_async(to, part, size, kind, stream);
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind) {
  const CUDA_MEMCPY3D box = flat(to, to_pitch, from, from_pitch, width, height, kind);
  return forward(DRIVER(cuMemcpy3D_v2), &box);
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream) {
  const CUDA_MEMCPY3D box = flat(to, to_pitch, from, from_pitch, width, height, kind);
  return forward(DRIVER(cuMemcpy3DAsync_v2), &box, stream);
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                size_t width, size_t height, enum cudaMemcpyKind kind) {
  CUDA_MEMCPY3D box = flat(nullptr, 0, from, pitch, width, height, kind);
  box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  box.dstArray = array(to);
  box.dstXInBytes = x;
  box.dstY = y;
  return forward(DRIVER(cuMemcpy3D_v2), &box);
}

cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x,
                                  size_t y, size_t width, size_t height, enum cudaMemcpyKind kind) {
  CUDA_MEMCPY3D box = flat(to, pitch, nullptr, 0, width, height, kind);
  box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  box.srcArray = array(from);
  box.srcXInBytes = x;
  box.srcY = y;
  return forward(DRIVER(cuMemcpy3D_v2), &box);
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms* parameters) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  RUNTIME_TRY(ensure_context());
  CUDA_MEMCPY3D box;
  RUNTIME_TRY(deep(*parameters, box));
  return error_of(DRIVER(cuMemcpy3D_v2)(&box));
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms* parameters, cudaStream_t stream) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  RUNTIME_TRY(ensure_context());
  CUDA_MEMCPY3D box;
  RUNTIME_TRY(deep(*parameters, box));
  return error_of(DRIVER(cuMemcpy3DAsync_v2)(&box, stream));
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr to, int value, struct cudaExtent extent) {
  for (size_t z = 0; z < extent.depth; ++z) {
    RUNTIME_TRY(forward(DRIVER(cuMemsetD2D8_v2), device_address(to.ptr) + z * to.pitch * to.ysize,
                        to.pitch, static_cast<unsigned char>(value), extent.width, extent.height));
  }
  return cudaSuccess;
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
                              cudaStream_t stream) {
  for (size_t z = 0; z < extent.depth; ++z) {
    RUNTIME_TRY(forward(DRIVER(cuMemsetD2D8Async), device_address(to.ptr) + z * to.pitch * to.ysize,
                        to.pitch, static_cast<unsigned char>(value), extent.width, extent.height,
                        stream));
  }
  return cudaSuccess;
}

}  // namespace entry
}  // namespace cuwarden::simulated_runtime
