// Calls that are left without returning, and calls inside calls on other stacks.
#include <sys/mman.h>
#include <ucontext.h>

#include <csetjmp>
#include <new>
#include <thread>

#include "tests/unit/hooks/fake_driver.hpp"

namespace cuwarden::hooks {
namespace {

using driver::Row;

std::jmp_buf back;

class LeftCalls : public HooksTest {
 protected:
  // Well below the frames of the calls that come after it, however those are inlined.
  [[gnu::noinline]] void leave_a_free() {
    volatile unsigned char below[1024];
    below[0] = 1;
    fake.in_free = [] { std::longjmp(back, 1); };
    if (setjmp(back) == 0) hooked(Row::cuMemFree_v2, cuMemFree_v2, 1ull);
    fake.in_free = nullptr;
    EXPECT_EQ(below[0], 1);
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

// As a pool of fibre stacks does with one that it takes back.
TEST_F(LeftCalls, ACallOnAStackThatCannotBeReadAnyMoreIsOver) {
  constexpr std::size_t bytes = 4096;
  void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  call_state.driver_mark = new (page) CallMark(page);
  call_state.driver_depth = 1;
  ASSERT_EQ(mprotect(page, bytes, PROT_NONE), 0);
  allocate();
  EXPECT_EQ(records().size(), 1u);
  munmap(page, bytes);
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
}  // namespace cuwarden::hooks
