// Limits of a context: the memory that they take, and the calls that take it.
#include "tests/unit/hooks/implicit_memory_fixture.hpp"

namespace cuwarden::hooks {
namespace {

TEST_F(ImplicitMemoryTest, a_heap_limits_memory_is_booked_at_the_first_launch_that_needs_the_heap) {
  FakeKernel plain{0, "plain"}, list{0, "list"}, deep_list{3072, "deep_list"};
  launch(plain, 0);
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 256 * mib, 0);
  EXPECT_EQ(bytes().heap, 0u);
  launch(plain, 4 * mib);  // a kernel that does not need the heap
  EXPECT_EQ(bytes().heap, 0u);
  launch(list, 261 * mib);
  EXPECT_EQ(bytes().heap, 258 * mib);
  EXPECT_EQ(bytes().modules, 7 * mib);
  FakeKernel large{0, "large"};
  launch(large, 300 * mib);
  EXPECT_EQ(bytes().heap, 258 * mib) << "once";
  // The heap comes together with more local memory, and is not larger than the driver makes one.
  fake.free_bytes = fake.total_bytes = 100'000 * mib;
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 300'000 * mib, 0);
  const std::size_t local = processors * threads_each * 2048;
  launch(deep_list, 16'864 * mib + local);
  EXPECT_EQ(bytes().local_memory, local);
  EXPECT_EQ(bytes().heap, (258 + 16'864) * mib);
}

TEST_F(ImplicitMemoryTest, only_memory_as_large_as_the_heap_is_taken_for_the_heap) {
  FakeKernel plain{0, "plain"}, library{0, "library"}, list{0, "list"};
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 16 * mib, 0);
  launch(plain, 140 * mib);
  launch(library, 12 * mib);
  EXPECT_EQ(bytes().heap, 0u);
  EXPECT_EQ(bytes().modules, 152 * mib);
  launch(list, 18 * mib);
  EXPECT_EQ(bytes().heap, 18 * mib);
}

TEST_F(ImplicitMemoryTest, a_heap_that_no_kernel_needs_is_looked_for_in_a_few_launches_only) {
  std::vector<FakeKernel> kernels(3000);
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 16 * mib, 0);
  use_up_readings();
  const int before = fake.readings;
  for (FakeKernel& kernel : kernels) launch(kernel, 0);
  EXPECT_LE(fake.readings - before, 2 * 256);
}

TEST_F(ImplicitMemoryTest, a_heap_that_a_captured_kernel_needs_is_booked_with_its_graph) {
  hooked(Row::cuStreamBeginCapture, cuStreamBeginCapture, nullptr);
  FakeKernel list{0, "list"};
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 256 * mib, 0);
  launch(list, 0);
  takes = 258 * mib;
  CUgraphExec exec = nullptr;
  hooked(Row::cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, &exec, CUgraph{}, 0ull);
  EXPECT_EQ(bytes().heap, 258 * mib);
}

TEST_F(ImplicitMemoryTest,
       a_heap_that_does_not_fit_is_a_refusal_of_its_size_and_other_lacks_are_none) {
  FakeKernel list{0, "list"}, greedy{0, "greedy", 64};
  const auto lacks_resources = [&](FakeKernel& kernel) {
    answer = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    launch(kernel, 0);
    answer = CUDA_SUCCESS;
    return refused().size();
  };
  fake.free_bytes = 1900 * mib;
  EXPECT_EQ(lacks_resources(list), 0u) << "no heap was set";
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 1800 * mib, 0);
  EXPECT_EQ(lacks_resources(list), 0u) << "the heap would have fitted";
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 2000 * mib, 0);
  EXPECT_EQ(lacks_resources(greedy), 0u) << "the kernel's block needs too many registers";
  block_of = 0;
  EXPECT_EQ(lacks_resources(list), 0u) << "a lack of registers cannot be ruled out";
  block_of = 128;
  ASSERT_EQ(lacks_resources(list), 1u);
  const auto incident = reader().incident(1).value();
  EXPECT_EQ(incident.asked, ledger::Asked::launch);
  EXPECT_EQ(incident.bytes, 2000 * mib);
  EXPECT_EQ(incident.result, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
}

TEST_F(ImplicitMemoryTest, a_heap_gets_no_last_pages_and_is_never_larger_than_the_drivers_largest) {
  FakeKernel list{0, "list"};
  fake.total_bytes = 100'000 * mib;
  fake.free_bytes = 10'000 * mib;
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 300'000 * mib, 0);
  answer = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  launch(list, 0);
  ASSERT_EQ(refused().size(), 1u);
  EXPECT_EQ(reader().incident(1)->bytes, 16'862 * mib);
  answer = CUDA_SUCCESS;
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 1024 * mib, 0);
  fake.free_bytes = 1027 * mib;
  answer = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  launch(list, 0);
  EXPECT_EQ(reader().incident(1)->repeats + refused().size(), 2u);
}

class RefusedStack : public ImplicitMemoryTest {
 protected:
  RefusedStack() {
    CUcontext context = nullptr;
    fake.current = nullptr;
    fake.primary_active = false;
    fake.free_bytes = fake.total_bytes - 527 * mib;
    hooked(Row::cuCtxCreate_v2, cuCtxCreate_v2, &context, 0u, 0);
    launch(plain, 0);
    of_context = bytes().used_after_first_context;
  }
  void refuse(CUresult with = CUDA_ERROR_OUT_OF_MEMORY) {
    answer = with;
    set_limit(CU_LIMIT_STACK_SIZE, 65536, -414 * static_cast<std::int64_t>(mib));
    answer = CUDA_SUCCESS;
  }
  FakeKernel plain{0, "plain"}, deep{5120, "deep"};
  std::uint64_t of_context = 0;
};

TEST_F(RefusedStack, memory_that_it_gives_back_is_subtracted_from_the_context_and_taken_again) {
  refuse();
  ASSERT_EQ(refused().size(), 1u);
  EXPECT_EQ(bytes().used_after_first_context, of_context - 414 * mib);
  launch(plain, 414 * mib);
  EXPECT_EQ(bytes().used_after_first_context, of_context);
  EXPECT_EQ(bytes().modules, 0u);
  EXPECT_EQ(bytes().local_memory, 0u);
}

TEST_F(RefusedStack,
       given_back_memory_is_taken_again_beside_local_memory_and_without_readings_left) {
  std::vector<FakeKernel> kernels(2000);
  for (FakeKernel& kernel : kernels) launch(kernel, 0);
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 400 * mib, 0);
  refuse();
  const std::size_t local = processors * threads_each * 4096;
  launch(deep, 414 * mib + local);
  EXPECT_EQ(bytes().used_after_first_context, of_context);
  EXPECT_EQ(bytes().local_memory, local);
  EXPECT_EQ(bytes().heap, 0u);
  EXPECT_EQ(bytes().modules, 0u);
}

TEST_F(RefusedStack, another_error_gives_nothing_back) {
  refuse(CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(bytes().used_after_first_context, of_context);
}

}  // namespace
}  // namespace cuwarden::hooks
