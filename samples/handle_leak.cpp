// The bug: memory made by cuMemCreate is unmapped and its address range is freed, but the handle is
// never released, and it holds the memory. So does a handle that was exported to another process:
// closing the descriptor does not release it.
//
// cuwarden reports the handles that are still held, their bytes, and where they were made.
//
//     handle_leak [handles] [exported handles]
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdio>

#include "samples/driver_entry_point.hpp"
#include "samples/planted_leaks.hpp"

namespace {

using sample::driver_entry_point;
using sample::require;

using Granularity = CUresult (*)(std::size_t*, const CUmemAllocationProp*,
                                 CUmemAllocationGranularity_flags);
using Reserve = CUresult (*)(CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr,
                             unsigned long long);
using Create = CUresult (*)(CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*,
                            unsigned long long);
using Map = CUresult (*)(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle,
                         unsigned long long);
using Unmap = CUresult (*)(CUdeviceptr, std::size_t);
using Export = CUresult (*)(void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                            unsigned long long);

int mapped_line = 0;
int exported_line = 0;

CUmemAllocationProp on_device(CUmemAllocationHandleType exported_as) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = 0;
  prop.requestedHandleTypes = exported_as;
  return prop;
}

[[gnu::noinline]] void grow_and_shrink(std::size_t bytes) {
  const auto reserve = driver_entry_point<Reserve>("cuMemAddressReserve", 10020);
  const auto create = driver_entry_point<Create>("cuMemCreate", 10020);
  const auto map = driver_entry_point<Map>("cuMemMap", 10020);
  const auto unmap = driver_entry_point<Unmap>("cuMemUnmap", 10020);
  const auto free_range = driver_entry_point<Unmap>("cuMemAddressFree", 10020);

  const CUmemAllocationProp prop = on_device(CU_MEM_HANDLE_TYPE_NONE);
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle handle{};
  require(reserve(&range, bytes, 0, 0, 0), "cuMemAddressReserve");
  mapped_line = __LINE__ + 1;
  require(create(&handle, bytes, &prop, 0), "cuMemCreate");
  require(map(range, bytes, 0, handle, 0), "cuMemMap");
  require(unmap(range, bytes), "cuMemUnmap");
  require(free_range(range, bytes), "cuMemAddressFree");
  // Missing here: cuMemRelease(handle).
}

[[gnu::noinline]] void offer_to_peer(std::size_t bytes) {
  const auto create = driver_entry_point<Create>("cuMemCreate", 10020);
  const auto export_handle = driver_entry_point<Export>("cuMemExportToShareableHandle", 10020);

  const CUmemAllocationProp prop = on_device(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUmemGenericAllocationHandle handle{};
  int descriptor = -1;
  exported_line = __LINE__ + 1;
  require(create(&handle, bytes, &prop, 0), "cuMemCreate");
  require(export_handle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          "cuMemExportToShareableHandle");
  close(descriptor);  // The peer has it now. Here, too, cuMemRelease is missing.
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t handles = sample::argument(argc, argv, 1, 6);
  const std::size_t exported = sample::argument(argc, argv, 2, 2);

  require(cudaFree(nullptr), "cudaFree");  // Makes the context.
  const CUmemAllocationProp prop = on_device(CU_MEM_HANDLE_TYPE_NONE);
  std::size_t bytes = 0;
  require(driver_entry_point<Granularity>("cuMemGetAllocationGranularity", 10020)(
              &bytes, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
          "cuMemGetAllocationGranularity");
  for (std::size_t i = 0; i < handles; ++i) grow_and_shrink(bytes);
  for (std::size_t i = 0; i < exported; ++i) offer_to_peer(bytes);

  std::printf("%zu ranges, all unmapped\n", handles);
  sample::print_leaks(
      {{"cuMemCreate", "vmm", handles, handles * bytes, "grow_and_shrink", mapped_line},
       {"cuMemCreate", "vmm", exported, exported * bytes, "offer_to_peer", exported_line}});
}
