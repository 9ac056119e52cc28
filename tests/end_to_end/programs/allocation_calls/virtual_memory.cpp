// Virtual memory: a handle's bytes are live until it has neither references nor mappings.
#include "tests/end_to_end/programs/allocation_calls/calls.hpp"

namespace allocation_calls {

namespace {

constexpr std::size_t page = std::size_t{2} << 20;

CUmemAllocationProp on_device() {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return prop;
}

}  // namespace

void virtual_memory(Account& account) {
  const CUmemAllocationProp prop = on_device();
  CUdeviceptr range = 0;
  REQUIRE(cuMemAddressReserve(&range, 16 * page, 0, 0, 0));  // addresses, not memory

  // Created, mapped, unmapped, released: gone.
  CUmemGenericAllocationHandle handle{};
  REQUIRE(cuMemCreate(&handle, page, &prop, 0));
  account.allocated("vmm", page);
  REQUIRE(cuMemMap(range, page, 0, handle, 0));
  REQUIRE(cuMemUnmap(range, page));
  REQUIRE(cuMemRelease(handle));
  account.freed("vmm", page);

  // Released while mapped: lives until the last of its two mappings goes; and several mappings, of
  // two handles, go in one call.
  CUmemGenericAllocationHandle first{};
  CUmemGenericAllocationHandle second{};
  REQUIRE(cuMemCreate(&first, page, &prop, 0));
  REQUIRE(cuMemCreate(&second, 2 * page, &prop, 0));
  account.allocated("vmm", page);
  account.allocated("vmm", 2 * page);
  REQUIRE(cuMemMap(range, page, 0, first, 0));
  REQUIRE(cuMemMap(range + page, 2 * page, 0, second, 0));
  REQUIRE(cuMemMap(range + 8 * page, page, 0, first, 0));
  REQUIRE(cuMemRelease(first));
  REQUIRE(cuMemRelease(second));
  REQUIRE(cuMemUnmap(range, 3 * page));
  account.freed("vmm", 2 * page);  // second; first is still mapped at its other address
  REQUIRE(cuMemUnmap(range + 8 * page, page));
  account.freed("vmm", page);

  // Retained by address: two references, two releases.
  CUmemGenericAllocationHandle retained{};
  CUmemGenericAllocationHandle again{};
  REQUIRE(cuMemCreate(&retained, page, &prop, 0));
  account.allocated("vmm", page);
  REQUIRE(cuMemMap(range, page, 0, retained, 0));
  REQUIRE(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range)));
  REQUIRE(cuMemUnmap(range, page));
  REQUIRE(cuMemRelease(again));
  REQUIRE(cuMemRelease(retained));
  account.freed("vmm", page);

  // The leaks: retained once too often; never unmapped; never released.
  CUmemGenericAllocationHandle leaked{};
  int line = __LINE__ + 1;
  REQUIRE(cuMemCreate(&leaked, 3 * page, &prop, 0));
  account.allocated("vmm", 3 * page);
  account.leaked({"cuMemCreate", "vmm", "virtual_memory", line, 1, 3 * page});
  REQUIRE(cuMemMap(range, 3 * page, 0, leaked, 0));
  REQUIRE(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range)));
  REQUIRE(cuMemUnmap(range, 3 * page));
  REQUIRE(cuMemRelease(leaked));

  CUmemGenericAllocationHandle mapped{};
  line = __LINE__ + 1;
  REQUIRE(cuMemCreate(&mapped, 4 * page, &prop, 0));
  account.allocated("vmm", 4 * page);
  account.leaked({"cuMemCreate", "vmm", "virtual_memory", line, 1, 4 * page});
  REQUIRE(cuMemMap(range, 4 * page, 0, mapped, 0));
  REQUIRE(cuMemRelease(mapped));

  CUmemGenericAllocationHandle held{};
  line = __LINE__ + 1;
  REQUIRE(cuMemCreate(&held, 5 * page, &prop, 0));
  account.allocated("vmm", 5 * page);
  account.leaked({"cuMemCreate", "vmm", "virtual_memory", line, 1, 5 * page});

  // An unmap that the driver refuses changes nothing.
  if (cuMemUnmap(range, page) == CUDA_SUCCESS) std::exit(3);  // a part of a mapping
}

}  // namespace allocation_calls
