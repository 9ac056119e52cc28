// Calls that a thread leaves without returning from them, and calls inside calls on other stacks.
#include <sys/mman.h>
#include <ucontext.h>

#include <csetjmp>
#include <new>
#include <thread>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"
#include "tests/unit/hooks/fake_driver.hpp"

namespace cuwarden::hooks {
namespace {

using driver::Row;

std::jmp_buf back;

class LeftCalls : public HooksTest {
 protected:
  // The function's frame lies well below the frames of later calls, even if those are inlined.
  [[gnu::noinline]] void leave_a_free() {
    volatile unsigned char below[1024];
    below[0] = 1;
    fake.in_free = [] { std::longjmp(back, 1); };
    if (setjmp(back) == 0) hooked(Row::cuMemFree_v2, cuMemFree_v2, 1ull);
    fake.in_free = nullptr;
    EXPECT_EQ(below[0], 1);
  }
  // Leaves a call whose canary lies on a page that can no longer be read.
  void leave_a_call_on_an_unreadable_page() {
    constexpr std::size_t bytes = 4096;
    page_ = Mapping::anonymous(bytes);
    ASSERT_TRUE(page_);
    call_state.driver_canary = new (page_.data()) CallCanary(page_.data());
    call_state.driver_depth = 1;
    ASSERT_EQ(mprotect(page_.data(), bytes, PROT_NONE), 0);
  }
  [[gnu::noinline]] void leave_a_runtime_call() {
    const RuntimeCall call(Row::cudaFree);
    std::longjmp(back, 1);
  }
  // The function's frame lies deeper than the frame of the call that was left, and overwrites it.
  [[gnu::noinline]] CUdeviceptr allocate_deeper() {
    volatile unsigned char over[2048];
    for (auto& byte : over) byte = 1;
    return allocate() + over[7] - 1;
  }

 private:
  Mapping page_;  // the unreadable page; empty if no test needs it
};

TEST_F(LeftCalls, a_thread_that_left_a_call_goes_on_recording) {
  leave_a_free();
  allocate();
  EXPECT_EQ(records().size(), 1u);
  EXPECT_EQ(call_state.driver_depth, 0);
}

TEST_F(LeftCalls, a_thread_that_calls_again_deeper_on_its_stack_goes_on_recording) {
  leave_a_free();
  allocate_deeper();
  EXPECT_EQ(records().size(), 1u);
}

TEST_F(LeftCalls, a_thread_other_than_the_first_goes_on_recording) {
  std::thread([&] {
    leave_a_free();
    allocate();
  }).join();
  EXPECT_EQ(records().size(), 1u);
}

TEST_F(LeftCalls, a_runtime_call_that_was_left_names_no_later_call) {
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

// A pool of fibre stacks may unmap a stack that it takes back.
TEST_F(LeftCalls, a_call_on_an_unmapped_stack_is_over) {
  leave_a_call_on_an_unreadable_page();
  allocate();
  EXPECT_EQ(records().size(), 1u);
}

TEST_F(LeftCalls, a_call_inside_a_call_counts_once) {
  fake.in_free = [this] { allocate(); };
  hooked(Row::cuMemFree_v2, cuMemFree_v2, 1ull);
  EXPECT_TRUE(records().empty());
  EXPECT_EQ(call_state.driver_depth, 0);
}

TEST_F(LeftCalls, a_call_inside_a_call_counts_once_if_memory_cannot_be_probed) {
  detail::probing_fails.store(true);
  fake.in_free = [this] { allocate(); };
  hooked(Row::cuMemFree_v2, cuMemFree_v2, 1ull);
  detail::probing_fails.store(false);
  EXPECT_TRUE(records().empty());
  EXPECT_EQ(call_state.driver_depth, 0);
}

TEST_F(LeftCalls, an_unmapped_canary_is_not_read_if_memory_cannot_be_probed) {
  leave_a_call_on_an_unreadable_page();
  frames_prove_left.store([](const void*, const void*) noexcept { return false; });
  detail::probing_fails.store(true);
  allocate();
  detail::probing_fails.store(false);
  frames_prove_left.store(nullptr);
  EXPECT_TRUE(records().empty()) << "nothing proves that the older call is over";
  call_state = {};
}

// Two stacks beside each other. The inner call's frame lies above that of the outer call, which is
// not over nevertheless.
alignas(64) char stacks[2][256 * 1024];
ucontext_t test_body, outer_fibre, inner_fibre;
std::function<void()> outer, inner;

TEST_F(LeftCalls, a_call_inside_a_call_on_another_stack_counts_once) {
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
