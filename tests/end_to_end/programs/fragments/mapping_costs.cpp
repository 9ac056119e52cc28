// mapping_costs PAGES: how long the driver takes for the calls by which pages of memory (2 MiB)
// come to share memory. Makes memory of PAGES pages for a handle, 64 times. Then it maps all of it,
// allows access, unmaps it, and gives it back. The last line has the mean time of each call. The
// memory is of the kind that cudaMalloc gives: other devices may reach it by GPUDirect RDMA, if
// these can.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/end_to_end/programs/require.hpp"

namespace {

constexpr std::size_t page = std::size_t{2} << 20;

// Makes the call for each handle's number. Returns the mean time of a call in nanoseconds.
template <class Call>
std::uint64_t mean_ns(std::size_t count, const Call& call) {
  const auto begun = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < count; ++i) REQUIRE(call(i));
  const auto took = std::chrono::steady_clock::now() - begun;
  return static_cast<std::uint64_t>(
             std::chrono::duration_cast<std::chrono::nanoseconds>(took).count()) /
         count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 0) * page;
  REQUIRE(cudaFree(nullptr));

  CUmemAllocationProp made{};
  made.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  made.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  int has_rdma = 0;
  REQUIRE(cuDeviceGetAttribute(&has_rdma,
                               CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0));
  made.allocFlags.gpuDirectRDMACapable = has_rdma != 0;
  CUmemAccessDesc access{};
  access.location = made.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

  std::array<CUmemGenericAllocationHandle, 64> handles{};
  // Another mapping stays beside these, so that the driver keeps its tables.
  CUmemGenericAllocationHandle beside = 0;
  CUdeviceptr start = 0;
  REQUIRE(cuMemAddressReserve(&start, (handles.size() + 1) * bytes, 0, 0, 0));
  const auto at = [&](std::size_t i) { return start + i * bytes; };
  REQUIRE(cuMemCreate(&beside, bytes, &made, 0));
  REQUIRE(cuMemMap(at(handles.size()), bytes, 0, beside, 0));
  REQUIRE(cuMemSetAccess(at(handles.size()), bytes, &access, 1));

  const std::size_t count = handles.size();
  const std::uint64_t create =
      mean_ns(count, [&](std::size_t i) { return cuMemCreate(&handles[i], bytes, &made, 0); });
  const std::uint64_t map =
      mean_ns(count, [&](std::size_t i) { return cuMemMap(at(i), bytes, 0, handles[i], 0); });
  const std::uint64_t allow =
      mean_ns(count, [&](std::size_t i) { return cuMemSetAccess(at(i), bytes, &access, 1); });
  const std::uint64_t unmap =
      mean_ns(count, [&](std::size_t i) { return cuMemUnmap(at(i), bytes); });
  const std::uint64_t release =
      mean_ns(count, [&](std::size_t i) { return cuMemRelease(handles[i]); });
  std::printf(
      "{\"create_ns\": %llu, \"map_ns\": %llu, \"access_ns\": %llu, \"unmap_ns\": %llu, "
      "\"release_ns\": %llu}\n",
      static_cast<unsigned long long>(create), static_cast<unsigned long long>(map),
      static_cast<unsigned long long>(allow), static_cast<unsigned long long>(unmap),
      static_cast<unsigned long long>(release));
  REQUIRE(cuMemUnmap(at(count), bytes));
  REQUIRE(cuMemRelease(beside));
  REQUIRE(cuMemAddressFree(start, (count + 1) * bytes));
  return 0;
}
