// Device memory that calls take without being asked for memory, measured by two readings.
#include <thread>
#include <utility>

#include "tests/unit/hooks/implicit_memory_fixture.hpp"

namespace cuwarden::hooks {
namespace {

TEST_F(ImplicitMemoryTest, memory_that_a_call_takes_is_booked_in_the_row_of_its_kind) {
  load(3 * mib);
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 * mib, 56 * mib);
  set_limit(CU_LIMIT_STACK_SIZE, 2048, 4 * mib);
  takes = mib;
  CUstream stream = nullptr;
  hooked(Row::cuStreamCreate, cuStreamCreate, &stream, 0u);
  EXPECT_EQ(bytes().modules, 3 * mib);
  EXPECT_EQ(bytes().heap, 56 * mib);
  EXPECT_EQ(bytes().local_memory, 4 * mib);
  EXPECT_EQ(bytes().streams, mib);
  // The reading that showed the memory becomes the device's latest one.
  EXPECT_EQ(device().at, ledger::ReadingAt::last_call);
  EXPECT_EQ(device().free_bytes, fake.free_bytes);
}

TEST_F(ImplicitMemoryTest, memory_that_is_given_back_lowers_the_row_but_never_below_zero) {
  load(4 * mib);
  unload(mib);
  EXPECT_EQ(bytes().modules, 3 * mib);
  unload(9 * mib);
  EXPECT_EQ(bytes().modules, 0u);
}

TEST_F(ImplicitMemoryTest, nothing_is_booked_if_another_thread_was_in_a_call) {
  const auto other_thread = [&](auto work) { meanwhile = [work] { std::thread(work).join(); }; };
  other_thread([&] { allocate(); });
  load(3 * mib);
  EXPECT_EQ(bytes().modules, 0u);
  // Two such calls at once cannot tell their own memory from the other's. The next reading tells
  // how much both took together.
  other_thread([&] { load(5 * mib); });
  load(3 * mib);
  EXPECT_EQ(bytes().modules, 0u);
  load(2 * mib);
  EXPECT_EQ(bytes().modules, (3 + 5 + 2) * mib);
}

TEST_F(ImplicitMemoryTest, calls_on_another_device_disturb_no_measurement) {
  const auto other_thread_on = [&](int device, auto work) {
    meanwhile = [device, work] {
      const int here = std::exchange(fake.current_device, device);
      std::thread(work).join();
      fake.current_device = here;
    };
  };
  other_thread_on(1, [&] {
    allocate();
    load(0);
  });
  load(3 * mib);
  EXPECT_EQ(bytes().modules, 3 * mib);
  other_thread_on(0, [&] { allocate(); });
  load(5 * mib);
  EXPECT_EQ(bytes().modules, 3 * mib);
  // The other thread's context is of another device, but the handle is of this one.
  other_thread_on(1, [&] {
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp properties{};
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    hooked(Row::cuMemCreate, cuMemCreate, &handle, std::size_t{2 * mib}, &properties, 0ull);
  });
  load(5 * mib);
  EXPECT_EQ(bytes().modules, 3 * mib);
}

TEST_F(ImplicitMemoryTest, under_a_capture_the_device_is_read_with_the_threads_mode_relaxed) {
  hooked(Row::cuStreamBeginCapture, cuStreamBeginCapture, nullptr);
  fake.capture_mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  load(3 * mib);
  EXPECT_EQ(bytes().modules, 3 * mib);
  EXPECT_EQ(fake.readings_not_relaxed, 0);
  EXPECT_EQ(fake.capture_mode, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

TEST_F(ImplicitMemoryTest,
       a_captured_kernels_local_memory_is_booked_when_its_graph_is_instantiated) {
  hooked(Row::cuStreamBeginCapture, cuStreamBeginCapture, nullptr);
  FakeKernel plain{0, "plain"}, deep{3072, "deep"}, deeper{5120, "deeper"};
  launch(plain, 140 * mib);
  launch(deeper, 0);
  launch(deep, 0);
  EXPECT_EQ(bytes().local_memory, 0u);
  const std::size_t threads = processors * threads_each;
  takes = mib + threads * 4096;
  CUgraphExec exec = nullptr;
  hooked(Row::cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, &exec, CUgraph{}, 0ull);
  EXPECT_EQ(bytes().local_memory, threads * 4096);
  EXPECT_EQ(bytes().modules, 140 * mib) << "memory that a graph takes for itself is not code";
  EXPECT_EQ(bytes().largest_local, 5120u);
#if CUDA_VERSION >= 12030
  EXPECT_EQ(device().largest_local_kernel, "deeper");
#endif
  // The context has enough local memory by now.
  launch(deeper, mib);
  EXPECT_EQ(bytes().local_memory, threads * 4096);
  EXPECT_EQ(bytes().modules, 141 * mib);
}

TEST_F(ImplicitMemoryTest,
       another_graphs_instantiation_is_not_taken_for_that_of_the_captured_kernel) {
  hooked(Row::cuStreamBeginCapture, cuStreamBeginCapture, nullptr);
  FakeKernel plain{0, "plain"}, deep{5120, "deep"};
  launch(plain, 140 * mib);
  launch(deep, 0);
  const auto instantiate = [&](std::int64_t bytes) {
    takes = bytes;
    CUgraphExec exec = nullptr;
    hooked(Row::cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, &exec, CUgraph{}, 0ull);
  };
  instantiate(2 * mib);
  EXPECT_EQ(bytes().local_memory, 0u);
  instantiate(processors * threads_each * 4096);
  EXPECT_EQ(bytes().local_memory, processors * threads_each * 4096u);
}

TEST_F(ImplicitMemoryTest, a_question_about_a_kernel_may_load_its_code_once) {
  FakeKernel kernel;
  EXPECT_TRUE(ask(kernel, 5 * mib));
  EXPECT_EQ(bytes().modules, 5 * mib);
  EXPECT_FALSE(ask(kernel, 7 * mib));
  EXPECT_EQ(bytes().modules, 5 * mib);
  unload(0);
  ask(kernel, -3 * static_cast<std::int64_t>(mib));
  EXPECT_EQ(bytes().modules, 5 * mib) << "a query gives no code back";
  unload(0);
  ask(kernel, 2500 * mib);
  EXPECT_EQ(bytes().modules, 5 * mib) << "no code is as large";
}

TEST_F(ImplicitMemoryTest, a_kernel_may_be_loaded_on_each_device) {
  FakeKernel kernel;
  EXPECT_TRUE(ask(kernel, 5 * mib));
  fake.current_device = 1;
  load(0);
  EXPECT_TRUE(ask(kernel, 4 * mib));
  EXPECT_FALSE(ask(kernel, 0));
  fake.current_device = 0;
  EXPECT_FALSE(ask(kernel, 0));
  EXPECT_EQ(bytes().modules, 5 * mib);
}

TEST_F(ImplicitMemoryTest, a_kernel_that_was_asked_about_without_a_reading_is_not_loaded) {
  FakeKernel first, second;
  EXPECT_TRUE(ask(first, 0));
  use_up_readings();
  EXPECT_FALSE(ask(second, 0));
  EXPECT_TRUE(loaded_kernels.has(&first));
  EXPECT_FALSE(loaded_kernels.has(&second));
}

TEST_F(ImplicitMemoryTest,
       a_free_during_a_measurement_disturbs_the_memorys_device_from_any_context) {
  const CUdeviceptr memory = allocate();
  meanwhile = [&] {
    const CallState mine = call_state;
    call_state = {};
    fake.current_device = 1;
    hooked(Row::cuMemFree_v2, cuMemFree_v2, memory);
    fake.current_device = 0;
    call_state = mine;
  };
  load(3 * mib);
  EXPECT_EQ(bytes().modules, 0u);
  // A free that began before the measurement and ends during it.
  const ledger::TakenRecord taken = session.allocations.take(Space::pointer, allocate());
  meanwhile = [&] { session.allocations.settle(taken, CUDA_SUCCESS); };
  load(3 * mib);
  EXPECT_EQ(bytes().modules, 0u);
  load(2 * mib);
  EXPECT_EQ(bytes().modules, 2 * mib);
}

TEST_F(ImplicitMemoryTest, a_captured_kernel_counts_as_new_when_it_is_launched) {
  hooked(Row::cuStreamBeginCapture, cuStreamBeginCapture, nullptr);
  FakeKernel plain{0, "plain"}, deep{3072, "deep"};
  launch(plain, 140 * mib);
  launch(deep, 0);
  launch(deep, processors * threads_each * 2048);
  EXPECT_EQ(bytes().local_memory, processors * threads_each * 2048u);
  const int readings = fake.readings;
  launch(deep, 0);
  EXPECT_EQ(fake.readings, readings);
}

TEST_F(ImplicitMemoryTest,
       a_kernels_first_launch_is_measured_and_later_ones_ask_the_driver_nothing) {
  FakeKernel kernel{0, "plain"};
  launch(kernel, 140 * mib);
  EXPECT_EQ(bytes().modules, 140 * mib);
  EXPECT_EQ(bytes().largest_local, 0u);
  const int readings = fake.readings, questions = fake.questions;
  launch(kernel, 0);
  EXPECT_EQ(fake.readings, readings);
  EXPECT_EQ(fake.questions, questions);
}

TEST_F(ImplicitMemoryTest, managed_memory_that_a_launch_brings_to_the_device_is_no_code) {
  const_cast<driver::RealDriver&>(real).cuMemAllocManaged =
      [](CUdeviceptr* out, std::size_t, unsigned) { return *out = 0x7000'0000, CUDA_SUCCESS; };
  CUdeviceptr managed = 0;
  hooked(Row::cuMemAllocManaged, cuMemAllocManaged, &managed, 64 * mib, 1u);
  FakeKernel plain{.name = "plain", .code_bytes = 2 * mib};
  launch(plain, 14 * mib);
  EXPECT_EQ(bytes().modules, 2 * mib);
  const std::size_t threads = processors * threads_each;
  FakeKernel deep{.local_bytes = 3072, .name = "deep", .code_bytes = mib};
  launch(deep, threads * 2048 + 14 * mib);
  EXPECT_EQ(bytes().modules, 3 * mib);
  EXPECT_EQ(bytes().local_memory, threads * 2048);
}

TEST_F(ImplicitMemoryTest, local_memory_is_told_apart_from_memory_of_the_processs_first_launch) {
  FakeKernel deep{3072, "deep"}, deeper{5120, "deeper"}, shallow{2048, "shallow"};
  const std::size_t threads = processors * threads_each;
  launch(deep, 140 * mib + threads * 2048);
  EXPECT_EQ(bytes().modules, 140 * mib);
  EXPECT_EQ(bytes().local_memory, threads * 2048);
  launch(deeper, threads * 2048);
  EXPECT_EQ(bytes().local_memory, threads * 4096);
  launch(shallow, mib);
  EXPECT_EQ(bytes().local_memory, threads * 4096);
  EXPECT_EQ(bytes().modules, 141 * mib);
  EXPECT_EQ(bytes().largest_local, 5120u);
#if CUDA_VERSION >= 12030
  EXPECT_EQ(device().largest_local_kernel, "deeper");
#endif
}

TEST_F(
    ImplicitMemoryTest,
    memory_that_a_failed_launch_gives_back_is_subtracted_from_local_memory_first_and_taken_again) {
  CUcontext context = nullptr;
  fake.current = nullptr;
  fake.primary_active = false;
  fake.free_bytes = fake.total_bytes - 527 * mib;
  hooked(Row::cuCtxCreate_v2, cuCtxCreate_v2, &context, 0u, 0);
  FakeKernel plain, deep{4096, "deep"}, deeper{65536, "deeper"};
  launch(plain, 148 * mib);
  launch(deep, 792 * mib);
  answer = CUDA_ERROR_OUT_OF_MEMORY;
  launch(deeper, -1342 * static_cast<std::int64_t>(mib));
  EXPECT_EQ(bytes().local_memory, 0u);
  EXPECT_EQ(bytes().modules, 0u);
  EXPECT_EQ(bytes().used_after_first_context, (527 + 148 + 792 - 1342) * mib);
  answer = CUDA_SUCCESS;
  launch(deep, 1000 * mib);
  // The context has its first memory again, and local memory.
  EXPECT_EQ(bytes().used_after_first_context, 527 * mib);
  EXPECT_EQ(bytes().local_memory, (1000 - (1342 - 148 - 792)) * mib);
}

TEST_F(ImplicitMemoryTest, a_kernels_name_is_bounded) {
  const std::string name(100'000, 'k');
  FakeKernel kernel{8192, name.c_str()};
  launch(kernel, mib);
  EXPECT_EQ(bytes().largest_local, 8192u);
#if CUDA_VERSION >= 12030
  EXPECT_EQ(device().largest_local_kernel, name.substr(0, 1024));
#endif
}

TEST_F(ImplicitMemoryTest, after_an_unload_every_kernel_is_new) {
  FakeKernel kernel;
  launch(kernel, mib);
  unload(0);
  launch(kernel, mib);
  EXPECT_EQ(bytes().modules, 2 * mib);
}

TEST_F(ImplicitMemoryTest, a_kernel_is_found_though_many_others_were_launched) {
  std::vector<FakeKernel> kernels(1000);
  for (FakeKernel& kernel : kernels) launch(kernel, 0);
  std::size_t known = 0;
  for (FakeKernel& kernel : kernels)
    known += launched_kernels.has(reinterpret_cast<CUfunction>(&kernel)) ? 1 : 0;
  EXPECT_GT(known, kernels.size() * 99 / 100);
  EXPECT_FALSE(launched_kernels.has(nullptr));
  EXPECT_FALSE(launched_kernels.expected_slot_has(nullptr));
}

TEST_F(ImplicitMemoryTest, readings_at_first_launches_are_rationed_except_for_larger_local_memory) {
  FakeKernel first, second;
  launch(first, 0);
  EXPECT_EQ(fake.readings, 2);
  use_up_readings();
  launch(second, 0);
  EXPECT_EQ(fake.readings, 2);
  FakeKernel deep{4096, "deep"};
  launch(deep, 6 * mib);
  EXPECT_EQ(bytes().local_memory, 6 * mib);
}

TEST_F(ImplicitMemoryTest, a_first_contexts_memory_is_kept_apart_from_that_of_further_contexts) {
  CUcontext context = nullptr;
  fake.current = nullptr;
  fake.primary_active = false;
  fake.free_bytes = fake.total_bytes - 527 * mib;
  hooked(Row::cuCtxCreate_v2, cuCtxCreate_v2, &context, 0u, 0);
  EXPECT_EQ(bytes().used_after_first_context, 527 * mib);
  load(3 * mib);
  const_cast<driver::RealDriver&>(real).cuCtxCreate_v2 = [](CUcontext* out, unsigned, CUdevice) {
    fake.free_bytes -= 524 * mib;
    return *out = fake.current = reinterpret_cast<CUcontext>(0x4000), CUDA_SUCCESS;
  };
  CUcontext second = nullptr;
  hooked(Row::cuCtxCreate_v2, cuCtxCreate_v2, &second, 0u, 0);
  EXPECT_EQ(bytes().used_after_first_context, 527 * mib);
  EXPECT_EQ(bytes().further_contexts, 524 * mib);

  hooked(Row::cuCtxDestroy_v2, cuCtxDestroy_v2, second);
  EXPECT_EQ(bytes().modules, 3 * mib);  // the device still has a context
  hooked(Row::cuCtxDestroy_v2, cuCtxDestroy_v2, context);
  EXPECT_EQ(bytes().modules, 0u);
  EXPECT_EQ(bytes().used_after_first_context, 0u);
  EXPECT_EQ(bytes().further_contexts, 0u);
}

TEST_F(ImplicitMemoryTest, a_refusal_for_lack_of_memory_is_an_incident_and_any_other_error_is_not) {
  FakeKernel kernel;
  answer = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(launch(kernel, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(load(0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(refused().empty());
  answer = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(launch(kernel, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(refused(), std::vector{ledger::Asked::launch});
  EXPECT_EQ(load(0), CUDA_ERROR_OUT_OF_MEMORY);
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 * mib, 0);
  CUstream stream = nullptr;
  hooked(Row::cuStreamCreate, cuStreamCreate, &stream, 0u);
  EXPECT_EQ(refused(), (std::vector{ledger::Asked::launch, ledger::Asked::module,
                                    ledger::Asked::limit, ledger::Asked::stream}));
  // The launch failed, so the kernel's next launch is its first.
  answer = CUDA_SUCCESS;
  launch(kernel, mib);
  EXPECT_EQ(bytes().modules, mib);
}

TEST_F(ImplicitMemoryTest, slow_readings_are_rationed_for_code_that_is_loaded_too) {
  use_up_readings();
  load(3 * mib);
  EXPECT_EQ(bytes().modules, 3 * mib) << "fast readings are not";
  session.implicit.reading_took(2'000'000);
  load(2 * mib);
  EXPECT_EQ(bytes().modules, 5 * mib) << "one slow reading may have had to wait";
  for (int i = 0; i < 2; ++i) session.implicit.reading_took(2'000'000);
  const int readings = fake.readings;
  load(5 * mib);
  EXPECT_EQ(fake.readings, readings);
}

TEST_F(ImplicitMemoryTest, readings_leave_errno_alone) {
  FakeKernel kernel{4096, "deep"};
  CUcontext context = nullptr;
  const auto keeps = [&](const char* what, auto call) {
    errno = 4242;
    call();
    EXPECT_EQ(errno, 4242) << what;
  };
  keeps("load", [&] { load(mib); });
  keeps("launch", [&] { launch(kernel, mib); });
  keeps("limit", [&] { set_limit(CU_LIMIT_STACK_SIZE, 9000, mib); });
  keeps("context", [&] { hooked(Row::cuCtxCreate_v2, cuCtxCreate_v2, &context, 0u, 0); });
  answer = CUDA_ERROR_OUT_OF_MEMORY;
  keeps("refusal", [&] { load(0); });
}

}  // namespace
}  // namespace cuwarden::hooks
