// Virtual memory: physical handles and their mappings. The bytes belong to the handle. They live
// until the handle is released and mapped nowhere. A reservation is address space, not memory.
#include "runtime_hooks/ledger/write/allocation_records/virtual_memory.hpp"

#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/serving/pool_memory.hpp"

namespace cuwarden::hooks {
namespace {

bool refused(CUresult result) {
  return result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED;
}

}  // namespace

CUresult cuMemCreate(HookedCall& call, CUmemGenericAllocationHandle* handle, size_t size,
                     const CUmemAllocationProp* prop, unsigned long long flags) {
  if (call.recording() && prop != nullptr && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
    call.memory().implicit.disturb(DeviceOrdinal{prop->location.id});
  const auto real_call = [&] { return call.real().cuMemCreate(handle, size, prop, flags); };
  if (!call.recording() || prop == nullptr) return real_call();
  const bool on_device = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  Allocation made{.kind = Kind::vmm,
                  .space = Space::vmm_handle,
                  .bytes = size,
                  .host = !on_device,
                  .device = DeviceOrdinal{on_device ? prop->location.id : -1}};
  const CUresult result = call.allocate(made, real_call);
  if (result == CUDA_SUCCESS) made.address = *handle;
  call.allocated(result, made);
  return result;
}

CUresult cuMemImportFromShareableHandle(HookedCall& call, CUmemGenericAllocationHandle* handle,
                                        void* osHandle, CUmemAllocationHandleType shHandleType) {
  const CUresult result =
      call.real().cuMemImportFromShareableHandle(handle, osHandle, shHandleType);
  // The size is 0 here: the driver tells it only once the imported memory is mapped.
  call.allocated(result, {.kind = Kind::imported,
                          .space = Space::vmm_handle,
                          .address = result == CUDA_SUCCESS ? *handle : 0});
  return result;
}

CUresult cuMemRetainAllocationHandle(HookedCall& call, CUmemGenericAllocationHandle* handle,
                                     void* addr) {
  // The program did not map the memory of cuwarden's pool, so it gets the error for memory that is
  // not mapped. A retained handle would also keep the pool from giving the pages back.
  if (serving::is_in_pool(reinterpret_cast<CUdeviceptr>(addr))) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = call.real().cuMemRetainAllocationHandle(handle, addr);
  if (call.recording() && result == CUDA_SUCCESS &&
      !call.memory().virtual_memory.retained_from_mapping(
          DeviceAddress{reinterpret_cast<std::uint64_t>(addr)}, DeviceAddress{*handle}))
    call.memory().allocations.handle_without_record();
  return result;
}

CUresult cuMemRelease(HookedCall& call, CUmemGenericAllocationHandle handle) {
  if (!call.recording()) return call.real().cuMemRelease(handle);
  const bool known = call.memory().virtual_memory.release_begin(DeviceAddress{handle});
  const CUresult result = call.real().cuMemRelease(handle);
  if (known && refused(result)) call.memory().virtual_memory.release_undo(DeviceAddress{handle});
  if (!known && result == CUDA_SUCCESS) call.memory().allocations.unknown_release();
  return result;
}

CUresult cuMemMap(HookedCall& call, CUdeviceptr ptr, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const CUresult result = call.real().cuMemMap(ptr, size, offset, handle, flags);
  if (call.recording() && result == CUDA_SUCCESS)
    call.memory().virtual_memory.mapped(DeviceAddress{ptr}, ByteCount{size}, DeviceAddress{handle},
                                        GroupId{0});
  return result;
}

CUresult cuMemUnmap(HookedCall& call, CUdeviceptr ptr, size_t size) {
  if (!call.recording()) return call.real().cuMemUnmap(ptr, size);
  // A range without records does not mean that a mapping was missed, since the driver also succeeds
  // in unmapping a range that is not mapped.
  const bool known = call.memory().virtual_memory.unmap_begin(DeviceAddress{ptr}, ByteCount{size});
  const CUresult result = call.real().cuMemUnmap(ptr, size);
  if (known && refused(result))
    call.memory().virtual_memory.unmap_undo(DeviceAddress{ptr}, ByteCount{size});
  return result;
}

#if CUDA_VERSION >= 12010
// A multicast object is not memory, so it has no record. It is released by cuMemRelease, which must
// not take it for a handle that was missed.
CUresult cuMulticastCreate(HookedCall& call, CUmemGenericAllocationHandle* mcHandle,
                           const CUmulticastObjectProp* prop) {
  const CUresult result = call.real().cuMulticastCreate(mcHandle, prop);
  if (call.recording() && result == CUDA_SUCCESS) call.memory().allocations.handle_without_record();
  return result;
}
#endif

}  // namespace cuwarden::hooks
