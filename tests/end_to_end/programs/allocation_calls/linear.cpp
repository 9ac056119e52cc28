// cudaMalloc, its pitched forms, managed memory, and the driver's twins.
#include "tests/end_to_end/programs/allocation_calls/calls.hpp"

namespace allocation_calls {

// Widths are multiples of every pitch that a device may choose, so that bytes are exact.
constexpr std::size_t width = 4096;

void linear(Account& account) {
  void* one = nullptr;
  void* two = nullptr;
  int line = __LINE__ + 1;
  REQUIRE(cudaMalloc(&one, 1000));
  account.allocated("device", 1000);
  account.leaked({"cudaMalloc", "device", "linear", line, 1, 1000});
  REQUIRE(cudaMalloc(&two, std::size_t{3} << 20));
  account.allocated("device", std::size_t{3} << 20);

  CUdeviceptr three = 0;
  CUdeviceptr four = 0;
  line = __LINE__ + 1;
  REQUIRE(cuMemAlloc(&three, 4096));
  account.allocated("device", 4096);
  account.leaked({"cuMemAlloc_v2", "device", "linear", line, 1, 4096});
  REQUIRE(cuMemAlloc(&four, 8192));
  account.allocated("device", 8192);

  std::size_t pitch = 0;
  CUdeviceptr five = 0;
  line = __LINE__ + 1;
  REQUIRE(cuMemAllocPitch(&five, &pitch, width, 10, 4));
  account.allocated("device", width * 10);
  account.leaked({"cuMemAllocPitch_v2", "device", "linear", line, 1, width * 10});

  void* six = nullptr;
  line = __LINE__ + 1;
  REQUIRE(cudaMallocPitch(&six, &pitch, width, 20));
  account.allocated("device", width * 20);
  account.leaked({"cudaMallocPitch", "device", "linear", line, 1, width * 20});

  cudaPitchedPtr seven{};
  line = __LINE__ + 1;
  REQUIRE(cudaMalloc3D(&seven, cudaExtent{width, 4, 8}));
  account.allocated("device", width * 4 * 8);
  account.leaked({"cudaMalloc3D", "device", "linear", line, 1, width * 4 * 8});

  REQUIRE(cudaFree(two));
  account.freed("device", std::size_t{3} << 20);
  REQUIRE(cudaFree(reinterpret_cast<void*>(four)));  // each layer frees what the other allocated
  account.freed("device", 8192);
  void* eight = nullptr;
  REQUIRE(cudaMalloc(&eight, 512));
  account.allocated("device", 512);
  REQUIRE(cuMemFree(reinterpret_cast<CUdeviceptr>(eight)));
  account.freed("device", 512);
}

void managed(Account& account) {
  void* one = nullptr;
  int line = __LINE__ + 1;
  REQUIRE(cudaMallocManaged(&one, 70000));
  account.allocated("managed", 70000);
  account.leaked({"cudaMallocManaged", "managed", "managed", line, 1, 70000});
  CUdeviceptr two = 0;
  line = __LINE__ + 1;
  REQUIRE(cuMemAllocManaged(&two, 80000, CU_MEM_ATTACH_GLOBAL));
  account.allocated("managed", 80000);
  account.leaked({"cuMemAllocManaged", "managed", "managed", line, 1, 80000});
  void* three = nullptr;
  REQUIRE(cudaMallocManaged(&three, 90000));
  account.allocated("managed", 90000);
  REQUIRE(cudaFree(three));
  account.freed("managed", 90000);
}

}  // namespace allocation_calls
