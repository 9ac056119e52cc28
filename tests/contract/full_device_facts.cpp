// Calls that need device memory for themselves, on a device that is full. Rescues rely on this: a
// refused call leaves nothing behind, and the same call succeeds once there is room.
#include <functional>
#include <vector>

#include "tests/contract/driver_test.hpp"
#include "tests/kernels_in_ptx.hpp"

namespace cuwarden::contract {
namespace {

constexpr CUresult good = CUDA_SUCCESS, no_memory = CUDA_ERROR_OUT_OF_MEMORY;
class FullDeviceFacts : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    ASSERT_EQ(cuModuleLoadData(&plain_module, kernels::plain_code.c_str()), good);
    ASSERT_EQ(cuModuleGetFunction(&plain, plain_module, "plain"), good);
    ASSERT_EQ(cuMemAlloc(&out, 4096), good);
    ASSERT_EQ(launch(plain), good);
    ASSERT_EQ(cuCtxSynchronize(), good);
  }
  CUresult launch(CUfunction function) { return kernels::launch(function, out); }
  // Fills the device, so that no page is left, but for blocks of `room` bytes in all that
  // make_room() frees.
  void fill_but_for(std::size_t room) {
    ASSERT_EQ(cuMemAlloc(&spare, room), good);
    // Blocks of 1 MiB leave no half page behind.
    for (std::size_t size = 16 * kGiB; size >= kMiB; size /= 2) fill(size);
  }
  void make_room() { ASSERT_EQ(cuMemFree(spare), good); }

  // Makes the call until it is refused, `most` times at most, and once more when there is room.
  void check(const std::function<CUresult()>& call, std::size_t room, int most = 1,
             bool gives_back = false) {
    fill_but_for(room);
    CUcontext before = nullptr;
    ASSERT_EQ(cuCtxGetCurrent(&before), good);
    int served = 0;
    CUresult answer = good;
    while (served < most && (answer = call()) == good) ++served;
    ASSERT_EQ(answer, no_memory) << served << " were served";
    EXPECT_EQ(cuCtxSynchronize(), good);
    const std::size_t free = free_bytes();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(call(), no_memory);
    EXPECT_EQ(cuCtxSynchronize(), good);
    EXPECT_EQ(free_bytes(), free);
    CUcontext after = nullptr;
    ASSERT_EQ(cuCtxGetCurrent(&after), good);
    EXPECT_EQ(after, before);
    EXPECT_TRUE(gives_back || free < 16 * kMiB) << free;
    make_room();
    EXPECT_EQ(call(), good);
    EXPECT_EQ(launch(plain), good);
    EXPECT_EQ(cuCtxSynchronize(), good);
  }
  void load_large_library() {
    ASSERT_EQ(cuLibraryLoadData(&library, kernels::large_code.c_str(), nullptr, nullptr, 0, nullptr,
                                nullptr, 0),
              good);
    ASSERT_EQ(cuLibraryGetKernel(&in_library, library, "plain"), good);
  }
  void instantiate_graph_with_memory() {
    ASSERT_EQ(cuGraphCreate(&graph, 0), good);
    ASSERT_EQ(kernels::add_memory(graph, device, 64 * kMiB), good);
    ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), good);
  }

  CUmodule plain_module = nullptr;
  CUfunction plain = nullptr;
  CUdeviceptr out = 0, spare = 0;
  CUlibrary library = nullptr;
  CUkernel in_library = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
};

TEST_F(FullDeviceFacts, a_stream) {
  check(
      [] {
        CUstream stream = nullptr;
        return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
      },
      256 * kMiB, 100);
}

TEST_F(FullDeviceFacts, a_context) {
  check(
      [this] {
        CUcontext made = nullptr;
        CUctxCreateParams parameters{};
        const CUresult result = cuCtxCreate(&made, &parameters, 0, device);
        if (result == good) cuCtxDestroy(made);
        return result;
      },
      kGiB);
}

// The device's first context may be the primary one of another library in the process.
TEST_F(FullDeviceFacts, a_primary_context) {
  check(
      [this] {
        CUcontext made = nullptr;
        const CUresult result = cuDevicePrimaryCtxRetain(&made, device);
        unsigned flags = 0;
        int active = 0;
        EXPECT_EQ(cuDevicePrimaryCtxGetState(device, &flags, &active), good);
        EXPECT_EQ(active != 0, result == good);
        if (result == good) cuDevicePrimaryCtxRelease(device);
        return result;
      },
      kGiB);
}

TEST_F(FullDeviceFacts, a_module_with_variables) {
  check(
      [] {
        CUmodule module = nullptr;
        return cuModuleLoadData(&module, kernels::large_code.c_str());
      },
      256 * kMiB);
}

TEST_F(FullDeviceFacts, the_module_of_a_library) {
  load_large_library();
  check(
      [this] {
        CUmodule module = nullptr;
        return cuLibraryGetModule(&module, library);
      },
      256 * kMiB);
}

TEST_F(FullDeviceFacts, the_function_of_a_librarys_kernel) {
  load_large_library();
  check(
      [this] {
        CUfunction function = nullptr;
        return cuKernelGetFunction(&function, in_library);
      },
      256 * kMiB);
}

TEST_F(FullDeviceFacts, a_variable_of_a_library) {
  load_large_library();
  check(
      [this] {
        CUdeviceptr variable = 0;
        std::size_t size = 0;
        return cuLibraryGetGlobal(&variable, &size, library, "big");
      },
      256 * kMiB);
}

TEST_F(FullDeviceFacts, the_first_launch_of_a_librarys_kernel) {
  load_large_library();
  check([this] { return launch(reinterpret_cast<CUfunction>(in_library)); }, 256 * kMiB);
}

// 16 KiB for each thread that the device can hold. A refused launch gives local memory back.
TEST_F(FullDeviceFacts, a_launch_with_local_memory) {
  int processors = 0, threads = 0;
  ASSERT_EQ(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
            good);
  ASSERT_EQ(
      cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device),
      good);
  const std::size_t needed = std::size_t{16384} * static_cast<std::size_t>(processors * threads);
  CUmodule module = nullptr;
  CUfunction deep = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, kernels::deep_code.c_str()), good);
  ASSERT_EQ(cuModuleGetFunction(&deep, module, "deep"), good);
  if (free_bytes() < needed + needed / 4) GTEST_SKIP() << "needs " << needed << " bytes";
  check([&] { return launch(deep); }, needed + needed / 8, 1, true);
}

// A refused launch gives the context's local memory back. Until the driver can take it again,
// copies and fills on the device are refused, too; copies from and to the host are not.
TEST_F(FullDeviceFacts, copies_and_fills_after_a_launch_that_was_refused) {
  CUmodule module = nullptr;
  CUfunction deep = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, kernels::deep_code.c_str()), good);
  ASSERT_EQ(cuModuleGetFunction(&deep, module, "deep"), good);
  CUdeviceptr to = 0, from = 0;
  ASSERT_EQ(cuMemAlloc(&to, 4 * kMiB), good);
  ASSERT_EQ(cuMemAlloc(&from, 4 * kMiB), good);
  std::vector<char> host(kMiB);
  fill_but_for(512 * kMiB);
  if (const CUresult answer = launch(deep); answer == good)
    GTEST_SKIP() << "512 MiB are enough for the kernel";
  const auto fill_again = [] {
    for (std::size_t size = 256 * kMiB; size >= kMiB; size /= 2) fill(size);
  };
  fill_again();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(cuMemcpyDtoD(to, from, 2 * kMiB), no_memory);
    EXPECT_EQ(cuMemcpyDtoDAsync(to, from, 512, nullptr), no_memory);
    EXPECT_EQ(cuMemsetD8(to, 1, kMiB), no_memory);
    EXPECT_EQ(launch(plain), no_memory);
    EXPECT_EQ(cuMemcpyDtoH(host.data(), from, host.size()), good);
    EXPECT_EQ(cuMemcpyHtoD(to, host.data(), host.size()), good);
    EXPECT_EQ(cuCtxSynchronize(), good);
  }
  make_room();
  EXPECT_EQ(cuMemcpyDtoD(to, from, 2 * kMiB), good);
  EXPECT_EQ(cuMemsetD8(to, 1, kMiB), good);
  EXPECT_EQ(launch(plain), good);
  EXPECT_EQ(cuCtxSynchronize(), good);
}

TEST_F(FullDeviceFacts, the_instantiation_of_a_graph) {
  ASSERT_EQ(cuGraphCreate(&graph, 0), good);
  ASSERT_EQ(kernels::add_launches(graph, plain, out, 2000), good);
  check(
      [this] {
        CUgraphExec made = nullptr;
        return cuGraphInstantiate(&made, graph, 0);
      },
      256 * kMiB);
}

TEST_F(FullDeviceFacts, the_launch_of_a_graph_with_memory) {
  instantiate_graph_with_memory();
  check([this] { return cuGraphLaunch(exec, nullptr); }, 256 * kMiB);
}

TEST_F(FullDeviceFacts, the_upload_of_a_graph_with_memory) {
  instantiate_graph_with_memory();
  check([this] { return cuGraphUpload(exec, nullptr); }, 256 * kMiB);
}

// The driver has host memory for these, if the device is full.
TEST_F(FullDeviceFacts, events_mapped_ranges_and_page_locked_memory_are_never_refused) {
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  const CUmemAccessDesc access{kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle page{};
  ASSERT_EQ(cuMemCreate(&page, 2 * kMiB, &kind, 0), good);
  CUdeviceptr range = 0;
  const std::size_t stride = 512 * kMiB, mappings = 100;
  ASSERT_EQ(cuMemAddressReserve(&range, stride * mappings, 0, 0, 0), good);
  fill_but_for(2 * kMiB);
  for (int i = 0; i < 1000; ++i) {
    CUevent event = nullptr;
    ASSERT_EQ(cuEventCreate(&event, 0), good);
    ASSERT_EQ(cuEventRecord(event, nullptr), good);
  }
  // Each of these needs page tables of its own.
  for (std::size_t i = 0; i < mappings; ++i) {
    ASSERT_EQ(cuMemMap(range + i * stride, 2 * kMiB, 0, page, 0), good);
    ASSERT_EQ(cuMemSetAccess(range + i * stride, 2 * kMiB, &access, 1), good);
  }
  void* locked = nullptr;
  EXPECT_EQ(cuMemHostAlloc(&locked, 64 * kMiB, 0), good);
  EXPECT_EQ(cuCtxSynchronize(), good);
}

TEST_F(FullDeviceFacts, access_to_a_peer_is_never_refused) {
  int count = 0;
  ASSERT_EQ(cuDeviceGetCount(&count), good);
  if (count < 2) GTEST_SKIP() << "needs two devices";
  CUdevice other{};
  CUcontext own = nullptr, others = nullptr;
  ASSERT_EQ(cuDeviceGet(&other, 1), good);
  ASSERT_EQ(cuCtxGetCurrent(&own), good);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&others, other), good);
  fill_but_for(2 * kMiB);
  EXPECT_EQ(cuCtxEnablePeerAccess(others, 0), good);
  ASSERT_EQ(cuCtxSetCurrent(others), good);
  EXPECT_EQ(cuCtxEnablePeerAccess(own, 0), good);
  EXPECT_EQ(cuCtxDisablePeerAccess(own), good);
  ASSERT_EQ(cuCtxSetCurrent(own), good);
  EXPECT_EQ(cuCtxDisablePeerAccess(others), good);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(other), good);
}

}  // namespace
}  // namespace cuwarden::contract
