// Contexts: the end of a context releases the memory that it owns. Virtual memory outlives it.
#include "tests/end_to_end/programs/allocation_calls/calls.hpp"

namespace allocation_calls {

extern "C" CUresult cuCtxCreate_v2(CUcontext*, unsigned int, CUdevice);

void contexts(Account& account) {
  CUcontext context = nullptr;
  REQUIRE(cuCtxCreate_v2(&context, 0, 0));
  CUdeviceptr memory = 0;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(cuMemAlloc(&memory, 5000));
    account.allocated("device", 5000);
  }
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle{};
  const int handle_line = __LINE__ + 1;
  REQUIRE(cuMemCreate(&handle, std::size_t{2} << 20, &prop, 0));
  account.allocated("vmm", std::size_t{2} << 20);
  account.leaked({"cuMemCreate", "vmm", "contexts", handle_line, 1, std::size_t{2} << 20});
  REQUIRE(cuCtxDestroy(context));
  for (int i = 0; i < 3; ++i) account.released("device", 5000);

  // The primary context: reset by the driver's call, and used again afterwards.
  void* in_primary = nullptr;
  REQUIRE(cudaMalloc(&in_primary, 6000));
  account.allocated("device", 6000);
  REQUIRE(cuDevicePrimaryCtxReset(0));
  account.released("device", 6000);
  REQUIRE(cudaDeviceReset());
  const int line = __LINE__ + 1;
  REQUIRE(cudaMalloc(&in_primary, 7000));
  account.allocated("device", 7000);
  account.leaked({"cudaMalloc", "device", "contexts", line, 1, 7000});
}

}  // namespace allocation_calls
