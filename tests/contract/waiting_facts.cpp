// Calls that wait for the device, and others that do not, while a kernel of 100 ms runs on a
// non-blocking stream. The test drives the device's time, so that no kernel ends before a call.
#include <atomic>
#include <thread>

#include "tests/comes_about.hpp"
#include "tests/contract/device_time.hpp"
#include "tests/contract/driver_test.hpp"

namespace cuwarden::contract {
namespace {

constexpr std::int64_t kernel_ms = 100;  // CUWARDEN_SIM_KERNEL_TIME

class WaitingFacts : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    if (!simulated) GTEST_SKIP() << "needs a device whose time the test drives";
    DeviceTime::take_over();
    ASSERT_EQ(cuModuleLoadData(&module, "image"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&kernel, module, "spin"), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    launch();
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  void launch() { launch(stream); }
  void launch(CUstream where) {
    ASSERT_EQ(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, where, nullptr, nullptr), CUDA_SUCCESS);
  }
  bool is_busy() { return cuStreamQuery(stream) == CUDA_ERROR_NOT_READY; }
  // Launches a kernel and makes the call. Fails the test unless the kernel runs when the call
  // begins, and no more when it has returned.
  template <typename Call>
  void waits_for_kernel(Call call) {
    launch();
    EXPECT_TRUE(is_busy());
    EXPECT_EQ(call(), CUDA_SUCCESS);
    EXPECT_FALSE(is_busy());
  }
  // Launches a kernel and makes the call. Fails the test unless the kernel still runs when the call
  // has returned.
  template <typename Call>
  void returns_before_kernel(Call call) {
    launch();
    EXPECT_EQ(call(), CUDA_SUCCESS);
    EXPECT_TRUE(is_busy());
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }

  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CUstream stream = nullptr;
};

TEST_F(WaitingFacts, frees_wait_for_the_device) {
  CUdeviceptr small = 0, neighbour = 0, large = 0;
  void* pinned = nullptr;
  ASSERT_EQ(cuMemAlloc(&neighbour, 4096), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc(&small, 4096), CUDA_SUCCESS);
  waits_for_kernel([&] { return cuMemFree(small); });
  ASSERT_EQ(cuMemAlloc(&large, 256 * kMiB), CUDA_SUCCESS);
  waits_for_kernel([&] { return cuMemFree(large); });
  ASSERT_EQ(cuMemAllocHost(&pinned, 4096), CUDA_SUCCESS);
  waits_for_kernel([&] { return cuMemFreeHost(pinned); });
}

TEST_F(WaitingFacts, allocations_do_not_wait) {
  CUdeviceptr address = 0;
  for (const std::size_t bytes : {kMiB, 256 * kMiB}) {
    returns_before_kernel([&] { return cuMemAlloc(&address, bytes); });
    EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
  }
}

TEST_F(WaitingFacts, allocations_wait_while_another_thread_frees_but_not_while_it_waits_otherwise) {
  CUdeviceptr freed = 0, address = 0;
  std::size_t free = 0, total = 0;
  // Makes `call` while another thread sleeps in `waits`, which waits for a kernel. Returns true if
  // that kernel still runs when the call has returned.
  const auto is_busy_after = [&](auto call, auto waits) {
    std::atomic<bool> has_waited{false};
    launch();
    std::thread other([&] {
      DeviceTime::sleep_for_others();
      cuCtxSetCurrent(context);
      EXPECT_EQ(waits(), CUDA_SUCCESS);
      has_waited = true;
    });
    EXPECT_TRUE(comes_about([] { return DeviceTime::sleepers() == 1; }));
    EXPECT_TRUE(is_busy());
    EXPECT_FALSE(has_waited);
    EXPECT_EQ(call(), CUDA_SUCCESS);
    const bool is_busy_then = is_busy();
    DeviceTime::pass(kernel_ms);
    other.join();
    return is_busy_then;
  };
  const auto frees = [&] { return cuMemFree(freed); };
  const auto allocates = [&] { return cuMemAlloc(&address, 4096); };
  const auto asks = [&] { return cuMemGetInfo(&free, &total); };
  const auto waits = [] { return cuCtxSynchronize(); };
  ASSERT_EQ(cuMemAlloc(&freed, 256 * kMiB), CUDA_SUCCESS);
  EXPECT_FALSE(is_busy_after(allocates, frees));
  ASSERT_EQ(cuMemAlloc(&freed, 256 * kMiB), CUDA_SUCCESS);
  EXPECT_TRUE(is_busy_after(asks, frees));
  EXPECT_TRUE(is_busy_after(allocates, waits));
}

TEST_F(WaitingFacts, unmapping_and_access_do_not_wait) {
  constexpr std::size_t kPage = 2 * kMiB;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr base = 0;
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(cuMemAddressReserve(&base, kPage, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemCreate(&handle, kPage, &properties, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(base, kPage, 0, handle, 0), CUDA_SUCCESS);
  returns_before_kernel([&] { return cuMemSetAccess(base, kPage, &access, 1); });
  returns_before_kernel([&] { return cuMemUnmap(base, kPage); });
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
}

TEST_F(WaitingFacts, an_event_after_a_kernel_is_ready_when_the_kernel_is) {
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
  launch();
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_SUCCESS);
}

// The work may be in any stream: one that does not wait for others, or a thread's own.
TEST_F(WaitingFacts, an_event_of_the_context_is_ready_when_all_of_it_is) {
  CUstream apart = nullptr;
  ASSERT_EQ(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  for (const CUstream busy : {apart, stream, CU_STREAM_PER_THREAD, CU_STREAM_LEGACY}) {
    std::thread([&] {
      ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
      launch(busy);
    }).join();
    EXPECT_EQ(cuCtxRecordEvent(context, event), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    DeviceTime::pass(kernel_ms);
    EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamQuery(busy), CUDA_SUCCESS);
  }
}

TEST_F(WaitingFacts, host_functions_run_in_turn_and_the_stream_waits_for_them) {
  static std::vector<int> order;
  order.clear();
  launch();
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(
        cuLaunchHostFunc(
            stream,
            [](void* n) { order.push_back(static_cast<int>(reinterpret_cast<std::size_t>(n))); },
            reinterpret_cast<void*>(i)),
        CUDA_SUCCESS);
  }
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST_F(WaitingFacts, too_much_dynamic_shared_memory_is_no_out_of_memory) {
  EXPECT_EQ(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 300000, stream, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(WaitingFacts, a_launch_fails_for_lack_of_local_memory_without_any_allocation_call) {
  CUfunction deep = nullptr;
  ASSERT_EQ(cuModuleGetFunction(&deep, module, "deep_stack"), CUDA_SUCCESS);
  leave_room(64 * kMiB);
  EXPECT_EQ(cuLaunchKernel(deep, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr),
            CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(WaitingFacts, an_event_behind_a_free_is_synchronised_at_once_whatever_work_follows) {
  leave_room(1024 * kMiB);
  const std::size_t most = free_bytes() / (64 * kMiB) * (64 * kMiB) - 64 * kMiB;
  CUdeviceptr block = 0, other = 0;
  CUevent behind = nullptr;
  ASSERT_EQ(cuEventCreate(&behind, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocAsync(&block, most, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  launch();
  ASSERT_EQ(cuMemFreeAsync(block, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(behind, stream), CUDA_SUCCESS);
  for (int i = 0; i < 20; ++i) launch();
  EXPECT_EQ(cuEventQuery(behind), CUDA_ERROR_NOT_READY);
  DeviceTime::pass(kernel_ms);
  ASSERT_EQ(cuEventQuery(behind), CUDA_SUCCESS);
  ASSERT_EQ(cuEventSynchronize(behind), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&other, most), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
}

}  // namespace
}  // namespace cuwarden::contract
