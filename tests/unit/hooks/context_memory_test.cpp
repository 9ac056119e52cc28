// Contexts, kernels' local memory and the heap of device-side malloc, with the device memory that
// the driver takes for them.
#include "tests/unit/hooks/implicit_memory_fixture.hpp"

namespace cuwarden::hooks {
namespace {

class ContextMemoryTest : public ImplicitMemoryTest {
 protected:
  ContextMemoryTest() {
    auto& functions = const_cast<driver::RealDriver&>(real);
    functions.cuCtxCreate_v2 = [](CUcontext* out, unsigned, CUdevice) {
      *out = fake.current = reinterpret_cast<CUcontext>(0x3000 + 16 * ++made);
      return in_call();
    };
    functions.cuCtxDestroy_v2 = [](CUcontext) { return in_call(); };
    made = 0;
    fake.current = nullptr;
    fake.primary_active = false;
    fake.free_bytes = fake.total_bytes;
  }
  CUcontext make_context(std::int64_t bytes) {
    takes = bytes;
    CUcontext context = nullptr;
    hooked(Row::cuCtxCreate_v2, cuCtxCreate_v2, &context, 0u, 0);
    return context;
  }
  void destroy(CUcontext context, std::int64_t gives_back) {
    takes = -gives_back;
    hooked(Row::cuCtxDestroy_v2, cuCtxDestroy_v2, context);
  }
  static inline std::uint64_t made = 0;
  FakeKernel plain{0, "plain"}, deep{3072, "deep"}, deeper{5120, "deeper"};
};

TEST_F(ContextMemoryTest, each_context_is_recorded_and_only_further_ones_have_bytes) {
  make_context(527 * mib);
  EXPECT_EQ(live(Kind::context), (Live{1, 0, 0}));
  const CUcontext second = make_context(524 * mib), third = make_context(524 * mib);
  EXPECT_EQ(live(Kind::context), (Live{3, 1048 * mib, 0}));
  destroy(third, 524 * mib);
  EXPECT_EQ(live(Kind::context), (Live{2, 524 * mib, 1}));
  EXPECT_EQ(bytes().further_contexts, 524 * mib);
  destroy(second, 524 * mib);
  EXPECT_EQ(live(Kind::context), (Live{1, 0, 2}));
  EXPECT_EQ(bytes().further_contexts, 0u);
  EXPECT_EQ(bytes().used_after_first_context, 527 * mib);
}

TEST_F(ContextMemoryTest, the_end_of_the_first_context_takes_no_bytes_of_the_others) {
  const CUcontext first = make_context(527 * mib);
  make_context(524 * mib);
  destroy(first, 527 * mib);
  EXPECT_EQ(live(Kind::context), (Live{1, 524 * mib, 1}));
  EXPECT_EQ(bytes().further_contexts, 524 * mib);
  EXPECT_EQ(bytes().used_after_first_context, 0u);
}

TEST_F(ContextMemoryTest, a_context_that_was_not_measured_is_counted) {
  make_context(527 * mib);
  meanwhile = [&] {
    const CallState mine = call_state;
    call_state = {};
    load(0);
    call_state = mine;
  };
  make_context(524 * mib);
  EXPECT_EQ(live(Kind::context), (Live{2, 0, 0}));
  make_context(-static_cast<std::int64_t>(mib));
  EXPECT_EQ(live(Kind::context), (Live{3, 0, 0}));
  EXPECT_EQ(bytes().further_contexts, 0u);
}

#if CUDA_VERSION >= 12040
class GreenContextTest : public ContextMemoryTest {
 protected:
  GreenContextTest() {
    auto& functions = const_cast<driver::RealDriver&>(real);
    functions.cuGreenCtxCreate = [](CUgreenCtx* out, CUdevResourceDesc, CUdevice, unsigned) {
      *out = reinterpret_cast<CUgreenCtx>(0x4000 + 16 * ++made);
      fake.primary_active = true;
      return in_call();
    };
    functions.cuGreenCtxDestroy = [](CUgreenCtx) { return in_call(); };
    functions.cuDevicePrimaryCtxRetain = [](CUcontext* out, CUdevice) {
      fake.primary_active = true;
      *out = fake.current = fake.primary;
      return std::exchange(retain_refuses, false) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
    };
    retain_refuses = false;
  }
  CUgreenCtx make_green(std::int64_t bytes) {
    takes = bytes;
    CUgreenCtx green = nullptr;
    hooked(Row::cuGreenCtxCreate, cuGreenCtxCreate, &green, nullptr, 0, 0u);
    return green;
  }
  void destroy_green(CUgreenCtx green) {
    takes = 0;
    hooked(Row::cuGreenCtxDestroy, cuGreenCtxDestroy, green);
  }
  static inline bool retain_refuses = false;
};

TEST_F(GreenContextTest, the_first_one_makes_the_primary_context_which_gets_the_record) {
  make_green(531 * mib);
  EXPECT_EQ(live(Kind::context), (Live{1, 0, 0}));
  EXPECT_EQ(bytes().used_after_first_context, 531 * mib);
  EXPECT_EQ(session.contexts.primary_of(DeviceOrdinal{0}),
            ContextId{reinterpret_cast<std::uint64_t>(fake.primary)});
}

TEST_F(GreenContextTest, contexts_beside_the_primary_one_have_records_and_bytes_of_their_own) {
  make_green(531 * mib);
  const CUgreenCtx second = make_green(4 * mib), third = make_green(4 * mib);
  EXPECT_EQ(live(Kind::context), (Live{3, 8 * mib, 0}));
  EXPECT_EQ(bytes().further_contexts, 8 * mib);
  destroy_green(second);
  EXPECT_EQ(live(Kind::context), (Live{2, 4 * mib, 1}));
  destroy_green(third);
  EXPECT_EQ(live(Kind::context), (Live{1, 0, 2}));
  EXPECT_EQ(bytes().used_after_first_context, 531 * mib);
}

TEST_F(GreenContextTest, memory_of_those_that_ended_is_kept_until_the_primary_context_ends) {
  make_green(531 * mib);
  const CUgreenCtx second = make_green(4 * mib);
  make_green(6 * mib);
  destroy_green(second);
  EXPECT_EQ(bytes().further_contexts, 10 * mib);
  hooked(Row::cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset_v2, 0);
  EXPECT_EQ(live(Kind::context).count, 0u);
  EXPECT_EQ(bytes().further_contexts, 0u);
  EXPECT_EQ(bytes().used_after_first_context, 0u);
}

TEST_F(GreenContextTest, one_that_the_driver_refuses_to_destroy_goes_on) {
  make_green(531 * mib);
  const CUgreenCtx second = make_green(4 * mib);
  answer = CUDA_ERROR_INVALID_CONTEXT;
  destroy_green(second);
  answer = CUDA_SUCCESS;
  EXPECT_EQ(live(Kind::context), (Live{2, 4 * mib, 0}));
  destroy_green(second);
  EXPECT_EQ(live(Kind::context), (Live{1, 0, 1}));
  EXPECT_EQ(bytes().further_contexts, 4 * mib);
}

TEST_F(GreenContextTest, a_first_one_beside_a_created_context_gives_the_primary_context_its_bytes) {
  make_context(527 * mib);
  make_green(528 * mib);
  EXPECT_EQ(live(Kind::context), (Live{2, 528 * mib, 0}));
  EXPECT_EQ(bytes().further_contexts, 528 * mib);
}

TEST_F(GreenContextTest, one_whose_primary_context_the_driver_does_not_name_has_no_record) {
  retain_refuses = true;
  destroy_green(make_green(531 * mib));
  EXPECT_EQ(live(Kind::context), (Live{0, 0, 0}));
}

TEST_F(GreenContextTest, the_end_of_the_last_one_ends_the_primary_context) {
  const CUgreenCtx only = make_green(531 * mib);
  fake.primary_active = false;
  destroy_green(only);
  EXPECT_EQ(live(Kind::context).count, 0u);
  EXPECT_EQ(bytes().used_after_first_context, 0u);
}
#endif

TEST_F(ContextMemoryTest, local_memory_and_heap_have_a_record_for_each_call_that_took_some) {
  const std::int64_t threads = processors * threads_each;
  make_context(527 * mib);
  launch(plain, 140 * mib);
  launch(deep, threads * 2048);
  launch(deeper, threads * 2048);
  EXPECT_EQ(live(Kind::local_memory), (Live{2, processors * threads_each * 4096u, 0}));
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 * mib, 56 * mib);
  EXPECT_EQ(live(Kind::heap), (Live{1, 56 * mib, 0}));
}

TEST_F(ContextMemoryTest, a_smaller_limit_ends_the_newest_records_of_the_context) {
  make_context(527 * mib);
  launch(plain, 0);
  set_limit(CU_LIMIT_STACK_SIZE, 2048, 8 * mib);
  set_limit(CU_LIMIT_STACK_SIZE, 4096, 4 * mib);
  EXPECT_EQ(live(Kind::local_memory), (Live{2, 12 * mib, 0}));
  set_limit(CU_LIMIT_STACK_SIZE, 1536, -6 * static_cast<std::int64_t>(mib));
  EXPECT_EQ(live(Kind::local_memory), (Live{1, 6 * mib, 1}));
  set_limit(CU_LIMIT_STACK_SIZE, 1024, -9 * static_cast<std::int64_t>(mib));
  EXPECT_EQ(live(Kind::local_memory), (Live{0, 0, 2}));
}

TEST_F(ContextMemoryTest, limits_that_go_up_and_down_leave_room_for_records) {
  make_context(527 * mib);
  for (int i = 0; i < 2000; ++i) {
    set_limit(CU_LIMIT_STACK_SIZE, 2048, mib);
    set_limit(CU_LIMIT_STACK_SIZE, 1024, -static_cast<std::int64_t>(mib));
  }
  set_limit(CU_LIMIT_STACK_SIZE, 2048, mib);
  EXPECT_EQ(live(Kind::local_memory), (Live{1, mib, 2000}));
}

TEST_F(ContextMemoryTest, further_calls_than_there_is_room_for_add_to_the_newest_record) {
  make_context(527 * mib);
  for (std::size_t i = 1; i <= 600; ++i) set_limit(CU_LIMIT_STACK_SIZE, 1024 + i, mib);
  EXPECT_EQ(live(Kind::local_memory).bytes, 600 * mib);
  EXPECT_EQ(bytes().local_memory, 600 * mib);
}

TEST_F(ContextMemoryTest, memory_that_a_refused_launch_gives_back_leaves_the_records) {
  make_context(527 * mib);
  launch(plain, 148 * mib);
  launch(deep, 792 * mib);
  answer = CUDA_ERROR_OUT_OF_MEMORY;
  launch(deeper, -1000 * static_cast<std::int64_t>(mib));
  answer = CUDA_SUCCESS;
  EXPECT_EQ(live(Kind::local_memory), (Live{0, 0, 1}));
  EXPECT_EQ(bytes().local_memory, 0u);
}

TEST_F(ContextMemoryTest, a_contexts_end_ends_its_memory_for_kernels_and_no_other) {
  const CUcontext first = make_context(527 * mib);
  launch(plain, 0);
  set_limit(CU_LIMIT_STACK_SIZE, 2048, 8 * mib);
  const CUcontext second = make_context(524 * mib);
  set_limit(CU_LIMIT_STACK_SIZE, 2048, 4 * mib);
  set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 * mib, 56 * mib);
  EXPECT_EQ(live(Kind::local_memory), (Live{2, 12 * mib, 0}));
  destroy(second, (524 + 4 + 56) * mib);
  EXPECT_EQ(live(Kind::local_memory), (Live{1, 8 * mib, 1}));
  EXPECT_EQ(live(Kind::heap), (Live{0, 0, 1}));
  EXPECT_EQ(bytes().local_memory, 8 * mib);
  EXPECT_EQ(bytes().heap, 0u);
  destroy(first, 535 * mib);
  EXPECT_EQ(live(Kind::local_memory), (Live{0, 0, 2}));
  EXPECT_EQ(live(Kind::context), (Live{0, 0, 2}));
}

}  // namespace
}  // namespace cuwarden::hooks
