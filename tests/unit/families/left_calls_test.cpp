// Calls that are left without returning, and calls inside calls on other stacks.
#include <ucontext.h>

#include <csetjmp>
#include <thread>

#include "tests/unit/families/fake_driver.hpp"

namespace cuwarden::families {
namespace {

using driver::Row;

std::jmp_buf back;

class LeftCalls : public FamiliesTest {
 protected:
  [[gnu::noinline]] void leave_a_free() {
    fake.in_free = [] { std::longjmp(back, 1); };
    if (setjmp(back) == 0) hooked(Row::cuMemFree_v2, cuMemFree_v2, 1ull);
    fake.in_free = nullptr;
  }
  [[gnu::noinline]] void leave_a_runtime_call() {
    const RuntimeCall call(Row::cudaFree);
    std::longjmp(back, 1);
  }
  // Deeper than the call that was left, over the memory that held its frame.
  [[gnu::noinline]] CUdeviceptr allocate_deeper() {
    volatile unsigned char over[2048];
    for (auto& byte : over) byte = 1;
    return allocate() + over[7] - 1;
  }
};

TEST_F(LeftCalls, TheThreadGoesOnRecording) {
  leave_a_free();
  allocate();
  EXPECT_EQ(records().size(), 1u);
  EXPECT_EQ(call_state.driver_depth, 0);
}

TEST_F(LeftCalls, AThreadThatGoesOnDeeperGoesOnRecording) {
  leave_a_free();
  allocate_deeper();
  EXPECT_EQ(records().size(), 1u);
}

TEST_F(LeftCalls, AnotherThreadThanTheFirstGoesOnRecording) {
  std::thread([&] {
    leave_a_free();
    allocate();
  }).join();
  EXPECT_EQ(records().size(), 1u);
}

TEST_F(LeftCalls, ALeftRuntimeCallNamesNothingAnyMore) {
  if (setjmp(back) == 0) leave_a_runtime_call();
  {
    const RuntimeCall call(Row::cudaMalloc);
    allocate();
  }
  ASSERT_EQ(records().size(), 1u);
  const auto group = reader().group(records()[0].group.value);
  EXPECT_EQ(group->api.value, driver::hook_id(Row::cudaMalloc).value);
  EXPECT_EQ(call_state.runtime_row, 0);
}

TEST_F(LeftCalls, ACallInsideACallCountsOnce) {
  fake.in_free = [this] { allocate(); };
  hooked(Row::cuMemFree_v2, cuMemFree_v2, 1ull);
  EXPECT_TRUE(records().empty());
  EXPECT_EQ(call_state.driver_depth, 0);
}

// Two stacks beside each other: the inner call lies above the outer one, which is not over.
alignas(64) char stacks[2][256 * 1024];
ucontext_t test_body, outer_fibre, inner_fibre;
std::function<void()> outer, inner;

TEST_F(LeftCalls, ACallInsideACallOnAnotherStackCountsOnce) {
  inner = [this] { allocate(); };
  outer = [this] {
    fake.in_free = [] { swapcontext(&outer_fibre, &inner_fibre); };
    hooked(Row::cuMemFree_v2, cuMemFree_v2, 1ull);
  };
  getcontext(&inner_fibre);
  inner_fibre.uc_stack = {stacks[1], 0, sizeof stacks[1]};
  inner_fibre.uc_link = &outer_fibre;
  makecontext(
      &inner_fibre, [] { inner(); }, 0);
  getcontext(&outer_fibre);
  outer_fibre.uc_stack = {stacks[0], 0, sizeof stacks[0]};
  outer_fibre.uc_link = &test_body;
  makecontext(
      &outer_fibre, [] { outer(); }, 0);
  swapcontext(&test_body, &outer_fibre);
  EXPECT_TRUE(records().empty());
  EXPECT_EQ(call_state.driver_depth, 0);
}

}  // namespace
}  // namespace cuwarden::families
