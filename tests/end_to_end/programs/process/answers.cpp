// answers WHAT: calls with wrong or unusual arguments, and prints the result codes, which the shim
// must not change. Ends with an account of what it really allocated.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/end_to_end/programs/expected_totals.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace {

expected::Account account;

void show(const char* what, cudaError_t result) {
  std::printf("%s: %s\n", what, cudaGetErrorName(result));
  std::printf("  last error: %s\n", cudaGetErrorName(cudaGetLastError()));
}
void show(const char* what, CUresult result) {
  std::printf("%s: driver %d\n", what, static_cast<int>(result));
}

void frees() {
  void* device = nullptr;
  void* host = nullptr;
  static char ordinary[4096];
  REQUIRE(cudaMalloc(&device, 1 << 20));
  account.allocated("device", 1 << 20);
  REQUIRE(cudaMallocHost(&host, 4096));
  account.allocated("pinned", 4096);

  show("cudaFree(NULL)", cudaFree(nullptr));
  show("cudaFreeHost(NULL)", cudaFreeHost(nullptr));
  show("cuMemFree(0)", cuMemFree(0));
  show("cuMemFreeHost(NULL)", cuMemFreeHost(nullptr));
  show("cudaFree of a wild pointer", cudaFree(reinterpret_cast<void*>(0x123456789000)));
  show("cuMemFree of a wild pointer", cuMemFree(0x123456789000));
  show("cudaFree of an inner pointer", cudaFree(static_cast<char*>(device) + 256));
  show("cudaFree of pinned memory", cudaFree(host));
  show("cudaFree of ordinary memory", cudaFree(ordinary));
  show("cudaFreeHost of device memory", cudaFreeHost(device));
  show("cudaFreeHost of ordinary memory", cudaFreeHost(ordinary));
  show("cudaHostUnregister of what was never registered", cudaHostUnregister(ordinary));
  show("cudaFree", cudaFree(device));
  account.freed("device", 1 << 20);
  show("cudaFree again", cudaFree(device));
  show("cuMemFree again", cuMemFree(reinterpret_cast<CUdeviceptr>(device)));
  show("cudaFreeHost", cudaFreeHost(host));
  account.freed("pinned", 4096);
  show("cudaFreeHost again", cudaFreeHost(host));
}

void sizes() {
  void* memory = reinterpret_cast<void*>(0x1);
  show("cudaMalloc of 0", cudaMalloc(&memory, 0));
  std::printf("  pointer is null: %d\n", memory == nullptr);
  for (const std::size_t bytes : {std::size_t{1} << 63, SIZE_MAX, std::size_t{1} << 46}) {
    show("cudaMalloc of too much", cudaMalloc(&memory, bytes));
    CUdeviceptr address = 0x77;
    show("cuMemAlloc of too much", cuMemAlloc(&address, bytes));
    std::printf("  pointer is untouched: %d\n", address == 0x77);
    show("cudaMallocAsync of too much", cudaMallocAsync(&memory, bytes, nullptr));
  }
  // Managed memory may exceed the device's: only what no address space holds is too much.
  show("cudaMallocManaged of too much", cudaMallocManaged(&memory, std::size_t{1} << 63));
  CUdeviceptr address = 0x77;
  show("cuMemAlloc of 0", cuMemAlloc(&address, 0));
  show("cuMemAlloc into nothing", cuMemAlloc(nullptr, 4096));
  std::size_t pitch = 0;
  show("cuMemAllocPitch of width 0", cuMemAllocPitch(&address, &pitch, 0, 4, 4));
  show("cuMemAllocManaged of 0", cuMemAllocManaged(&address, 0, CU_MEM_ATTACH_GLOBAL));
  show("cudaHostRegister of 0", cudaHostRegister(&address, 0, 0));
  show("cuMemGetInfo into nothing", cuMemGetInfo(nullptr, nullptr));
  show("cudaMalloc", cudaMalloc(&memory, 4096));
  account.allocated("device", 4096);
  show("cudaFree", cudaFree(memory));
  account.freed("device", 4096);
}

// Fills the device, and goes on when it is full.
void exhaust() {
  void* block = nullptr;
  std::size_t count = 0;
  constexpr std::size_t bytes = std::size_t{256} << 20;
  while (cudaMalloc(&block, bytes) == cudaSuccess && count < 1000) {
    ++count;
    account.allocated("device", bytes);
  }
  std::printf("%zu blocks, then %s\n", count, cudaGetErrorName(cudaGetLastError()));
  show("once more", cudaMalloc(&block, bytes));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "no_driver") {  // prints what a program without a driver gets
    void* memory = nullptr;
    int devices = -1;
    show("cudaMalloc", cudaMalloc(&memory, 4096));
    show("cudaGetDeviceCount", cudaGetDeviceCount(&devices));
    show("cudaFree", cudaFree(nullptr));
    return 4;
  }
  REQUIRE(cudaFree(nullptr));
  if (what == "frees") frees();
  if (what == "sizes") sizes();
  if (what == "exhaust") exhaust();
  account.print();
}
