// Refused calls for which no rung is tried, or no memory is spilled, because of the call itself or
// of the settings: the ledger has the reason.
#include <algorithm>

#include "tests/unit/hooks/fake_driver.hpp"
#include "tests/unit/manual_clock.hpp"

namespace cuwarden::hooks {
namespace {

using driver::Row;
using ledger::LeftOut;

class LeftOutReasonsTest : public HooksTest {
 protected:
  static driver::RealDriver refusing() {
    driver::RealDriver real = fake_functions();
    real.cuMemAlloc_v2 = [](CUdeviceptr*, size_t) { return CUDA_ERROR_OUT_OF_MEMORY; };
    real.cuMemCreate = [](CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*,
                          unsigned long long) { return CUDA_ERROR_OUT_OF_MEMORY; };
    real.cuMemHostAlloc = [](void**, size_t, unsigned) { return CUDA_ERROR_OUT_OF_MEMORY; };
    real.cuStreamCreate = [](CUstream*, unsigned) { return CUDA_ERROR_OUT_OF_MEMORY; };
    real.cuMemImportFromShareableHandle = [](CUmemGenericAllocationHandle*, void*,
                                             CUmemAllocationHandleType) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    };
    real.cuCtxCreate_v2 = [](CUcontext*, unsigned, CUdevice) {
      return CUDA_ERROR_DEVICE_UNAVAILABLE;
    };
    real.cuDeviceGetAttribute = [](int* value, CUdevice_attribute which, CUdevice) {
      const bool is_mode = which == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE;
      return *value = is_mode ? CU_COMPUTEMODE_PROHIBITED : 0, CUDA_SUCCESS;
    };
    return real;
  }
  void ask(Session& of, std::size_t bytes = large) {
    CUdeviceptr memory = 0;
    hooked_on(refuses, of, Row::cuMemAlloc_v2, cuMemAlloc_v2, &memory, bytes);
  }
  void create_handle(Session& of) {
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp properties{};
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    hooked_on(refuses, of, Row::cuMemCreate, cuMemCreate, &handle, large,
              static_cast<const CUmemAllocationProp*>(&properties), 0ull);
  }
  void create_context(Session& of) {
    CUcontext context = nullptr;
    hooked_on(refuses, of, Row::cuCtxCreate_v2, cuCtxCreate_v2, &context, 0u, CUdevice{0});
  }
  // Returns the reasons of the newest incident, by Rung.
  std::array<LeftOut, ledger::rung_count> reasons() const {
    return reader().incident(reader().rows(ledger::RegionId::incidents) - 1).value().left_out;
  }
  LeftOut reason_of(ledger::Rung rung) const { return reasons()[static_cast<std::size_t>(rung)]; }
  bool is_reason_of_all(LeftOut reason) const {
    return std::ranges::all_of(reasons(), [&](LeftOut each) { return each == reason; });
  }

  static constexpr std::size_t large = std::size_t{64} << 20;
  ManualClock clock;
  const driver::RealDriver refuses = refusing();
  Session rescuing{
      *writer,
      refuses,
      shim.around(clock, {.most_host_bytes = 1 << 30}),
      {.pool = PoolMode::rescue, .sync_timeout_ns = 100'000'000, .spill = {.bytes = 1 << 30}}};
  Session off{*writer, refuses, shim.around(clock), {}};
};

TEST_F(LeftOutReasonsTest, no_rung_is_tried_with_rescues_off) {
  ask(off);
  EXPECT_TRUE(is_reason_of_all(LeftOut::rescues_off));
}

TEST_F(LeftOutReasonsTest, no_rung_helps_against_a_compute_mode) {
  for (Session* const each : {&rescuing, &off}) {
    create_context(*each);
    EXPECT_TRUE(is_reason_of_all(LeftOut::compute_mode));
  }
}

TEST_F(LeftOutReasonsTest, a_call_that_is_never_repeated_says_so) {
  CUmemGenericAllocationHandle handle = 0;
  void* const from = nullptr;
  hooked_on(refuses, rescuing, Row::cuMemImportFromShareableHandle, cuMemImportFromShareableHandle,
            &handle, from, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  EXPECT_TRUE(is_reason_of_all(LeftOut::not_repeated));
}

TEST_F(LeftOutReasonsTest, a_request_right_after_a_larger_one_in_vain_is_not_tried) {
  ask(rescuing);
  EXPECT_FALSE(is_reason_of_all(LeftOut::in_vain_before));
  create_handle(rescuing);
  EXPECT_TRUE(is_reason_of_all(LeftOut::in_vain_before));
}

TEST_F(LeftOutReasonsTest, memory_that_only_the_driver_has_is_not_spilled) {
  create_handle(rescuing);
  EXPECT_EQ(reason_of(ledger::Rung::spill), LeftOut::drivers_memory);
}

TEST_F(LeftOutReasonsTest, host_memory_is_not_spilled) {
  void* memory = nullptr;
  hooked_on(refuses, rescuing, Row::cuMemHostAlloc, cuMemHostAlloc, &memory, large, 0u);
  EXPECT_EQ(reason_of(ledger::Rung::spill), LeftOut::host_memory);
}

TEST_F(LeftOutReasonsTest, a_call_that_is_no_allocation_is_not_spilled) {
  CUstream stream = nullptr;
  hooked_on(refuses, rescuing, Row::cuStreamCreate, cuStreamCreate, &stream, 0u);
  EXPECT_EQ(reason_of(ledger::Rung::spill), LeftOut::no_allocation);
}

TEST_F(LeftOutReasonsTest, a_small_request_is_not_spilled) {
  ask(rescuing, std::size_t{1} << 20);
  EXPECT_EQ(reason_of(ledger::Rung::spill), LeftOut::too_small);
}

TEST_F(LeftOutReasonsTest, a_request_that_a_rung_may_serve_has_no_reason_against_it) {
  ask(rescuing, (std::size_t{1} << 20) + 1);
  EXPECT_EQ(reason_of(ledger::Rung::spill), LeftOut::none);
  EXPECT_EQ(reason_of(ledger::Rung::retry), LeftOut::none);
}

}  // namespace
}  // namespace cuwarden::hooks
