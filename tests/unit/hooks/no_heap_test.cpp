// Recording a call must use no heap at all and call no loader function. A program's allocator may
// call CUDA while it holds its own locks, and a signal handler may have interrupted malloc. The
// shim's heap is private, so only this unit test can see calls of it.
#include <dlfcn.h>

#include "tests/counting_heap.hpp"
#include "tests/unit/hooks/fake_driver.hpp"

extern "C" {

// The test needs no results of these functions; it only counts their calls.
int dladdr(const void*, Dl_info*) noexcept {
  ++calls;
  return 0;
}
void* dlsym(void*, const char*) noexcept {
  ++calls;
  return nullptr;
}

}  // extern "C"

namespace cuwarden::hooks {
namespace {

using driver::Row;

class NoHeap : public HooksTest {
 protected:
  template <class Result, class... Parameters, class... Arguments>
  [[gnu::noinline]] Result recorded(Row row, Result (*body)(HookedCall&, Parameters...),
                                    Arguments... arguments) {
    HookedCall call(real, &with_stacks, row);
    return body(call, arguments...);
  }

  void allocate_and_free(int count) {
    for (int i = 0; i < count; ++i) {
      CUdeviceptr linear = 0, ordered = 0;
      recorded(Row::cuMemAlloc_v2, cuMemAlloc_v2, &linear, std::size_t{512});
      recorded(Row::cuMemAllocAsync, cuMemAllocAsync, &ordered, std::size_t{512}, nullptr);
      recorded(Row::cuMemFree_v2, cuMemFree_v2, ordered);
      recorded(Row::cuMemFree_v2, cuMemFree_v2, linear);
    }
  }

  Session with_stacks{*writer, real, shim.around(), {.stack_depth = 64, .python_frames = true}};
};

TEST_F(NoHeap, recording_a_call_uses_no_heap_and_calls_no_loader_function) {
  const long at_start = calls;
  std::free(std::malloc(1));
  dlsym(nullptr, "");
  ASSERT_EQ(calls, at_start + 3) << "the test counts calls of malloc, free and dlsym";
  allocate_and_free(10);  // afterwards the modules and stacks are known
  const long before = calls;
  allocate_and_free(1000);
  EXPECT_EQ(calls - before, 0);
  EXPECT_GT(reader().rows(ledger::RegionId::stacks), 1u);
}

}  // namespace
}  // namespace cuwarden::hooks
