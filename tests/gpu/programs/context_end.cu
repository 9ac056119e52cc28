// context_end reset KIND | destroy KIND: allocates, ends the context while the memory is live, and
// prints how much of it is left, by cuMemGetInfo. KIND: device, async, pool, vmm, managed, pinned,
// array. Run it alone on the device, because the figures are of the whole device.
#include <cuda.h>

#include <cstring>
#include <string>

#include "samples/driver_entry_point.hpp"
#include "tests/gpu/programs/device_work.cuh"

namespace memory {

using expected::Account;

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr std::size_t bytes = 512 * MiB;

int allocated_line = 0;

std::string allocate(const std::string& kind, void** kept) {
  if (kind == "device") {
    allocated_line = __LINE__ + 1;
    REQUIRE(cudaMalloc(kept, bytes));
    return "cudaMalloc";
  }
  if (kind == "async") {
    allocated_line = __LINE__ + 1;
    REQUIRE(cudaMallocAsync(kept, bytes, nullptr));
    return "cudaMallocAsync";
  }
  if (kind == "pool") {
    cudaMemPoolProps props{};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t pool = nullptr;
    REQUIRE(cudaMemPoolCreate(&pool, &props));
    allocated_line = __LINE__ + 1;
    REQUIRE(cudaMallocFromPoolAsync(kept, bytes, pool, nullptr));
    return "cudaMallocFromPoolAsync";
  }
  if (kind == "vmm") {
    const auto create = sample::driver_entry_point<decltype(&cuMemCreate)>("cuMemCreate", 10020);
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemGenericAllocationHandle handle{};
    allocated_line = __LINE__ + 1;
    REQUIRE(create(&handle, bytes, &prop, 0));
    return "cuMemCreate";
  }
  if (kind == "managed") {
    allocated_line = __LINE__ + 1;
    REQUIRE(cudaMallocManaged(kept, 64 * MiB));
    return "cudaMallocManaged";
  }
  if (kind == "pinned") {
    allocated_line = __LINE__ + 1;
    REQUIRE(cudaMallocHost(kept, 64 * MiB));
    return "cudaMallocHost";
  }
  if (kind == "array") {
    const cudaChannelFormatDesc channel = cudaCreateChannelDesc<unsigned>();
    cudaArray_t array = nullptr;
    allocated_line = __LINE__ + 1;
    REQUIRE(cudaMallocArray(&array, &channel, 16384, 8192));
    return "cudaMallocArray";
  }
  std::exit(2);
}

std::string reported_kind(const std::string& kind) {
  return kind == "async" || kind == "pool" ? "stream_ordered" : kind;
}

}  // namespace memory

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const bool reset = std::strcmp(argv[1], "reset") == 0;
  const std::string kind = argv[2];
  using Create = CUresult (*)(CUcontext*, unsigned, CUdevice);
  using WithContext = CUresult (*)(CUcontext);

  const long long bare = work::warm_up();  // The primary context is there, and empty.
  CUcontext context = nullptr;
  if (!reset) REQUIRE(sample::driver_entry_point<Create>("cuCtxCreate", 3020)(&context, 0, 0));
  const long long before = work::warm_up();
  void* kept = nullptr;
  const std::string api = memory::allocate(kind, &kept);
  const std::size_t bytes =
      kind == "managed" || kind == "pinned" ? 64 * memory::MiB : memory::bytes;
  if (kind != "vmm" && kind != "array")
    work::fill_and_check(kind.c_str(), kept, memory::MiB / 4, 1);
  REQUIRE(cudaDeviceSynchronize());
  const long long with = work::used_bytes();

  if (reset) {
    REQUIRE(cudaDeviceReset());
    work::warm_up();
  } else {
    REQUIRE(sample::driver_entry_point<WithContext>("cuCtxDestroy", 4000)(context));
    REQUIRE(cudaSetDevice(0));
    work::warm_up();
  }
  const long long after = work::used_bytes();
  // The driver's answer to a free of the memory tells if it still knows it.
  const char* answer = "not asked";
  if (kind == "async" || kind == "pool")
    answer = cudaGetErrorName(cudaFreeAsync(kept, nullptr));
  else if (kind == "device" || kind == "managed")
    answer = cudaGetErrorName(cudaFree(kept));
  else if (kind == "pinned")
    answer = cudaGetErrorName(cudaFreeHost(kept));
  cudaGetLastError();
  std::printf("freed afterwards: %s\n", answer);
  std::printf("memory: {\"taken_bytes\":%lld,\"left_bytes\":%lld,\"left_after_free_bytes\":%lld}\n",
              with - before, after - bare, (cudaDeviceSynchronize(), work::used_bytes()) - bare);
  std::printf(
      "{\"api\":\"%s\",\"kind\":\"%s\",\"function\":\"allocate\",\"line\":%d,\"count\":1,"
      "\"bytes\":%zu,\"freed_afterwards\":\"%s\"}\n",
      api.c_str(), memory::reported_kind(kind).c_str(), memory::allocated_line, bytes, answer);
}
