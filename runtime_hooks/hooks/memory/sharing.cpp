// Memory that another process or another API owns. The record belongs to the call that opens it.
#include "runtime_hooks/driver/gate_scope.hpp"
#include "runtime_hooks/hooks/call/hooks.hpp"
#include "runtime_hooks/hooks/memory/driver_questions.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/serving/pool_memory.hpp"

namespace cuwarden::hooks {
namespace {

// Returns the allocation of a view into imported memory. A view is freed on its own, but its bytes
// belong to the import.
Allocation view(Space space, std::uint64_t address, std::uint64_t bytes) {
  return {.kind = Kind::imported,
          .space = space,
          .address = address,
          .bytes = bytes,
          .owned_by_context = true,
          .counts_no_bytes = true};
}

// Records the opening of a handle. If one handle is opened twice, the driver returns the same
// pointer and counts the openings; so does cuwarden.
CUresult opened(HookedCall& call, const CUdeviceptr* pointer, auto open) {
  const CUresult result = open();
  if (!call.recording() || result != CUDA_SUCCESS) return result;
  call.memory().pools.shares_by_ipc();
  if (call.memory().records.opened_again(Space::pointer, DeviceAddress{*pointer})) return result;
  call.allocated(result, {.kind = Kind::imported,
                          .address = *pointer,
                          .bytes = extent_of(call, *pointer),
                          .owned_by_context = true,
                          .opened = true,
                          .device = call.memory().queries.device_of(*pointer)});
  return result;
}

// A handle for sharing gives access to the pages themselves, even after cuwarden has mapped other
// addresses to them. So once one was made, memory of cuwarden's pool is no longer moved.
CUresult reached(HookedCall& call, CUdeviceptr address, auto make) {
  // No handle is made while memory is being moved.
  const driver::GateScope at_the_gate;
  const CUresult result = make();
  if (call.recording() && result == CUDA_SUCCESS && serving::is_in_pool(address))
    call.memory().pools.memory_is_reached();
  return result;
}

}  // namespace

#define OF_SHARED_MEMORY CUWARDEN_HOOK_BY
#include "runtime_hooks/driver/hooks.def"

// The driver refuses to share memory of cuwarden's pool by IPC. The program gets the driver's
// error, since it may have another way to share memory, and a message tells its user the reason.
CUresult cuIpcGetMemHandle(HookedCall& call, CUipcMemHandle* pHandle, CUdeviceptr dptr) {
  const CUresult result = call.real().cuIpcGetMemHandle(pHandle, dptr);
  if (!call.recording()) return result;
  call.memory().pools.shares_by_ipc();
  if (result != CUDA_SUCCESS) call.memory().pools.shared_in_vain(dptr);
  return result;
}

CUresult cuIpcCloseMemHandle(HookedCall& call, CUdeviceptr dptr) {
  const auto close = [&] { return call.real().cuIpcCloseMemHandle(dptr); };
  if (!call.recording()) return close();
  ledger::Allocations& records = call.memory().records;
  if (!records.closed_not_last(Space::pointer, DeviceAddress{dptr}))
    return call.freed(Space::pointer, dptr, close);
  const CUresult result = close();
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED)
    records.opened_again(Space::pointer, DeviceAddress{dptr});
  return result;
}

CUresult cuImportExternalMemory(HookedCall& call, CUexternalMemory* extMem_out,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* memHandleDesc) {
  const CUresult result = call.real().cuImportExternalMemory(extMem_out, memHandleDesc);
  call.allocated(
      result, {.kind = Kind::imported,
               .space = Space::external_memory,
               .address = result == CUDA_SUCCESS ? reinterpret_cast<std::uint64_t>(*extMem_out) : 0,
               .bytes = memHandleDesc != nullptr ? memHandleDesc->size : 0,
               .owned_by_context = true});
  return result;
}

CUresult cuDestroyExternalMemory(HookedCall& call, CUexternalMemory extMem) {
  return call.freed(Space::external_memory, reinterpret_cast<std::uint64_t>(extMem),
                    [&] { return call.real().cuDestroyExternalMemory(extMem); });
}

CUresult cuExternalMemoryGetMappedBuffer(HookedCall& call, CUdeviceptr* devPtr,
                                         CUexternalMemory extMem,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* bufferDesc) {
  const CUresult result = call.real().cuExternalMemoryGetMappedBuffer(devPtr, extMem, bufferDesc);
  if (result == CUDA_SUCCESS)
    call.allocated(result, view(Space::pointer, *devPtr, bufferDesc->size));
  return result;
}

CUresult cuExternalMemoryGetMappedMipmappedArray(
    HookedCall& call, CUmipmappedArray* mipmap, CUexternalMemory extMem,
    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* mipmapDesc) {
  const CUresult result =
      call.real().cuExternalMemoryGetMappedMipmappedArray(mipmap, extMem, mipmapDesc);
  if (result == CUDA_SUCCESS)
    call.allocated(result,
                   view(Space::mipmapped_array, reinterpret_cast<std::uint64_t>(*mipmap), 0));
  return result;
}

}  // namespace cuwarden::hooks
