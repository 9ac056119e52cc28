// What limits of a context take, and when.
#include "tests/unit/families/implicit_memory_fixture.hpp"

namespace cuwarden::families {
namespace {

TEST_F(ImplicitMemoryTest, TheHeapThatWasSetIsTakenByTheFirstLaunchThatNeedsIt) {
  FakeKernel plain{0, "plain"}, list{0, "list"}, deep_list{3072, "deep_list"};
  launch(plain, 0);
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 256 * mib, 0);
  EXPECT_EQ(bytes().heap, 0u);
  launch(plain, 4 * mib);  // one that does not
  EXPECT_EQ(bytes().heap, 0u);
  launch(list, 261 * mib);
  EXPECT_EQ(bytes().heap, 258 * mib);
  EXPECT_EQ(bytes().modules, 7 * mib);
  FakeKernel large{0, "large"};
  launch(large, 300 * mib);
  EXPECT_EQ(bytes().heap, 258 * mib) << "once";
  // With more local memory; and no larger than the driver makes it.
  fake.free_bytes = fake.total_bytes = 100'000 * mib;
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 300'000 * mib, 0);
  const std::size_t local = processors * threads_each * 2048;
  launch(deep_list, 16'864 * mib + local);
  EXPECT_EQ(bytes().local_memory, local);
  EXPECT_EQ(bytes().heap, (258 + 16'864) * mib);
}

TEST_F(ImplicitMemoryTest, AHeapThatDoesNotFitIsARefusalOfItsSizeAndOtherLacksAreNone) {
  FakeKernel list{0, "list"};
  answer = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  launch(list, 0);
  EXPECT_TRUE(refused().empty()) << "too many registers, or the like";
  set_limit(CU_LIMIT_STACK_SIZE, 2048, 0);
  answer = CUDA_SUCCESS;
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 2000 * mib, 0);
  answer = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  launch(list, 0);
  EXPECT_TRUE(refused().empty()) << "it would have fitted";
  fake.free_bytes = 1900 * mib;
  launch(list, 0);
  ASSERT_EQ(refused().size(), 1u);
  const auto incident = reader().incident(1).value();
  EXPECT_EQ(incident.asked, ledger::Asked::launch);
  EXPECT_EQ(incident.bytes, 2000 * mib);
  EXPECT_EQ(incident.result, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
}

TEST_F(ImplicitMemoryTest, WhatARefusedStackGivesBackIsTakenFromTheContextAndTakenAgain) {
  FakeKernel plain{0, "plain"};
  CUcontext context = nullptr;
  fake.current = nullptr;
  fake.primary_active = false;
  fake.free_bytes = fake.total_bytes - 527 * mib;
  hooked(Row::cuCtxCreate_v2, cuCtxCreate_v2, &context, 0u, 0);
  const std::uint64_t of_context = bytes().used_after_first_context;
  launch(plain, 0);
  answer = CUDA_ERROR_OUT_OF_MEMORY;
  set_limit(CU_LIMIT_STACK_SIZE, 65536, -414 * static_cast<std::int64_t>(mib));
  ASSERT_EQ(refused().size(), 1u);
  answer = CUDA_SUCCESS;
  const auto all = [&] {
    const ledger::ImplicitBytes now = bytes();
    return now.used_after_first_context + now.further_contexts + now.modules + now.local_memory;
  };
  EXPECT_EQ(all(), of_context - 414 * mib);
  launch(plain, 414 * mib);
  EXPECT_EQ(all(), of_context);
}

}  // namespace
}  // namespace cuwarden::families
