// Calls that wait for the device, and others that do not, while a kernel of 100 ms runs on a
// non-blocking stream.
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/comes_about.hpp"
#include "tests/contract/driver_test.hpp"
#include "tests/thread_state.hpp"

namespace cuwarden::contract {
namespace {

class WaitingFacts : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    if (!simulated) GTEST_SKIP() << "needs a kernel of known duration";
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
  // Launches a kernel and makes the call. Returns true if the kernel ran when the call began, and
  // fails the test if it still runs when the call has returned.
  template <typename Call>
  bool waits_for_kernel(Call call) {
    launch();
    const bool was_busy = is_busy();
    EXPECT_EQ(call(), CUDA_SUCCESS);
    EXPECT_FALSE(is_busy());
    return was_busy;
  }
  // Launches a kernel and makes the call. Returns true if the kernel still runs when the call has
  // returned.
  template <typename Call>
  bool returns_before_kernel(Call call) {
    launch();
    EXPECT_EQ(call(), CUDA_SUCCESS);
    const bool is_before = is_busy();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    return is_before;
  }

  // Other work on the machine may hold a call up, so that the kernel ends first: a claim about
  // their order holds if one attempt of many shows it.
  template <typename Attempt>
  static bool is_so_once(Attempt attempt) {
    for (int i = 0; i < 50; ++i)
      if (attempt()) return true;
    return false;
  }

  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CUstream stream = nullptr;
};

TEST_F(WaitingFacts, frees_wait_for_the_device) {
  CUdeviceptr small = 0, neighbour = 0, large = 0;
  void* pinned = nullptr;
  ASSERT_EQ(cuMemAlloc(&neighbour, 4096), CUDA_SUCCESS);
  EXPECT_TRUE(is_so_once([&] {
    EXPECT_EQ(cuMemAlloc(&small, 4096), CUDA_SUCCESS);
    return waits_for_kernel([&] { return cuMemFree(small); });
  }));
  EXPECT_TRUE(is_so_once([&] {
    EXPECT_EQ(cuMemAlloc(&large, 256 * kMiB), CUDA_SUCCESS);
    return waits_for_kernel([&] { return cuMemFree(large); });
  }));
  EXPECT_TRUE(is_so_once([&] {
    EXPECT_EQ(cuMemAllocHost(&pinned, 4096), CUDA_SUCCESS);
    return waits_for_kernel([&] { return cuMemFreeHost(pinned); });
  }));
}

TEST_F(WaitingFacts, allocations_do_not_wait) {
  CUdeviceptr address = 0;
  for (const std::size_t bytes : {kMiB, 256 * kMiB})
    EXPECT_TRUE(is_so_once([&] {
      const bool is_before = returns_before_kernel([&] { return cuMemAlloc(&address, bytes); });
      EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
      return is_before;
    }));
}

TEST_F(WaitingFacts, allocations_wait_while_another_thread_frees_but_not_while_it_waits_otherwise) {
  CUdeviceptr freed = 0, address = 0;
  std::size_t free = 0, total = 0;
  // Makes `call` while another thread sleeps in `waits`, which waits for a kernel. Returns true if
  // that kernel ran when the call began. `is_busy_then`: true if the kernel still runs when the
  // call has returned.
  const auto beside = [&](auto waits, auto call, bool& is_busy_then) {
    std::atomic<pid_t> waiting{0};
    std::atomic<bool> has_waited{false};
    launch();
    std::thread other([&] {
      cuCtxSetCurrent(context);
      waiting = gettid();
      EXPECT_EQ(waits(), CUDA_SUCCESS);
      has_waited = true;
    });
    EXPECT_TRUE(
        comes_about([&] { return has_waited || (waiting != 0 && thread_state(waiting) == 'S'); }));
    const bool was_busy = is_busy();
    EXPECT_EQ(call(), CUDA_SUCCESS);
    is_busy_then = is_busy();
    other.join();
    return was_busy;
  };
  const auto frees = [&] { return cuMemFree(freed); };
  const auto allocates = [&] { return cuMemAlloc(&address, 4096); };
  const auto asks = [&] { return cuMemGetInfo(&free, &total); };
  const auto waits = [] { return cuCtxSynchronize(); };
  const auto allocate_freed = [&] { EXPECT_EQ(cuMemAlloc(&freed, 256 * kMiB), CUDA_SUCCESS); };
  bool is_busy_then = false;
  EXPECT_TRUE(is_so_once([&] {
    allocate_freed();
    const bool was_busy = beside(frees, allocates, is_busy_then);
    EXPECT_FALSE(is_busy_then);
    return was_busy;
  }));
  EXPECT_TRUE(is_so_once([&] {
    allocate_freed();
    return beside(frees, asks, is_busy_then) && is_busy_then;
  }));
  EXPECT_TRUE(is_so_once([&] { return beside(waits, allocates, is_busy_then) && is_busy_then; }));
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
  EXPECT_TRUE(is_so_once([&] {
    return returns_before_kernel([&] { return cuMemSetAccess(base, kPage, &access, 1); });
  }));
  EXPECT_EQ(cuMemUnmap(base, kPage), CUDA_SUCCESS);
  EXPECT_TRUE(is_so_once([&] {
    EXPECT_EQ(cuMemMap(base, kPage, 0, handle, 0), CUDA_SUCCESS);
    return returns_before_kernel([&] { return cuMemUnmap(base, kPage); });
  }));
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
}

TEST_F(WaitingFacts, an_event_after_a_kernel_is_ready_when_the_kernel_is) {
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
  EXPECT_TRUE(is_so_once([&] {
    launch();
    EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
    return cuEventQuery(event) == CUDA_ERROR_NOT_READY &&
           cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
  }));
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
    EXPECT_TRUE(is_so_once([&] {
      std::thread([&] {
        ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
        launch(busy);
      }).join();
      EXPECT_EQ(cuCtxRecordEvent(context, event), CUDA_SUCCESS);
      return cuEventQuery(event) == CUDA_ERROR_NOT_READY;
    }));
    ASSERT_TRUE(comes_about([&] { return cuEventQuery(event) != CUDA_ERROR_NOT_READY; }));
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
  ASSERT_TRUE(comes_about([&] { return cuEventQuery(behind) != CUDA_ERROR_NOT_READY; }));
  ASSERT_EQ(cuEventSynchronize(behind), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&other, most), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
}

}  // namespace
}  // namespace cuwarden::contract
