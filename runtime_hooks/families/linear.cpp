// Linear device memory: cuMemAlloc, cuMemAllocPitch, cuMemFree. cuMemFree also takes managed,
// stream-ordered, imported and graph pointers; all live in one address space.
#include "runtime_hooks/families/bodies.hpp"
#include "runtime_hooks/families/pool_memory.hpp"

namespace cuwarden::families {
namespace {

Allocation linear(std::uint64_t address, std::uint64_t bytes) {
  return {.kind = Kind::device, .address = address, .bytes = bytes, .owned_by_context = true};
}

}  // namespace

CUresult cuMemAlloc(HookedCall& call, CUdeviceptr_v1* dptr, unsigned int bytesize) {
  const CUresult result =
      call.allocate(linear(0, bytesize), [&] { return call.real().cuMemAlloc(dptr, bytesize); });
  call.allocated(result, linear(result == CUDA_SUCCESS ? *dptr : 0, bytesize));
  return result;
}

CUresult cuMemAlloc_v2(HookedCall& call, CUdeviceptr* dptr, size_t bytesize) {
  if (dptr != nullptr && call.recording()) {
    if (const std::uint64_t address = call.recorder().allocate_in_pool(bytesize)) {
      *dptr = address;
      Allocation served = linear(address, bytesize);
      served.in_pool = true;
      call.allocated(CUDA_SUCCESS, served);
      return CUDA_SUCCESS;
    }
  }
  const auto put = [dptr](std::uint64_t address) { *dptr = address; };
  const Recorder::PlaceElsewhere place(put);
  const CUresult result = call.allocate(
      linear(0, bytesize), [&] { return call.real().cuMemAlloc_v2(dptr, bytesize); }, &place);
  call.allocated(result, linear(result == CUDA_SUCCESS ? *dptr : 0, bytesize));
  return result;
}

CUresult cuMemAllocPitch(HookedCall& call, CUdeviceptr_v1* dptr, unsigned int* pPitch,
                         unsigned int WidthInBytes, unsigned int Height,
                         unsigned int ElementSizeBytes) {
  const CUresult result = call.allocate(linear(0, std::uint64_t{WidthInBytes} * Height), [&] {
    return call.real().cuMemAllocPitch(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
  });
  const std::uint64_t pitch = result == CUDA_SUCCESS ? *pPitch : WidthInBytes;
  call.allocated(result, linear(result == CUDA_SUCCESS ? *dptr : 0, pitch * Height));
  return result;
}

CUresult cuMemAllocPitch_v2(HookedCall& call, CUdeviceptr* dptr, size_t* pPitch,
                            size_t WidthInBytes, size_t Height, unsigned int ElementSizeBytes) {
  const CUresult result = call.allocate(linear(0, std::uint64_t{WidthInBytes} * Height), [&] {
    return call.real().cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
  });
  const std::uint64_t pitch = result == CUDA_SUCCESS ? *pPitch : WidthInBytes;
  call.allocated(result, linear(result == CUDA_SUCCESS ? *dptr : 0, pitch * Height));
  return result;
}

CUresult cuMemFree(HookedCall& call, CUdeviceptr_v1 dptr) {
  return call.freed(Space::pointer, dptr, [&] { return call.real().cuMemFree(dptr); });
}

CUresult cuMemFree_v2(HookedCall& call, CUdeviceptr dptr) {
  return call.freed(Space::pointer, dptr, [&] {
    return is_of_pool(dptr) ? free_of_pool(call.real(), dptr) : call.real().cuMemFree_v2(dptr);
  });
}

}  // namespace cuwarden::families
