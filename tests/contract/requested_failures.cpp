// Failures on request, and limits that the environment sets. Runs on the simulated driver only,
// with the environment that meson.build gives.
#include <string>

#include "tests/contract/driver_test.hpp"

namespace {

std::string told;  // names of the functions of which simulated_gpu_tells() was told

}  // namespace

extern "C" void simulated_gpu_tells(const char* function) {
  told += function;
  told += ' ';
}

namespace cuwarden::contract {
namespace {

class RequestedFailures : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    if (!simulated) GTEST_SKIP() << "the simulated driver's settings";
  }
};

TEST_F(RequestedFailures, the_second_call_fails_and_no_other) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, 4096), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&address, 4096), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&address, 4096), CUDA_SUCCESS);
}

TEST_F(RequestedFailures, every_second_call_fails_with_the_given_code) {
  void* host = nullptr;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cuMemHostAlloc(&host, 4096, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemHostAlloc(&host, 4096, 0), CUDA_ERROR_INVALID_VALUE);
  }
}

TEST_F(RequestedFailures, from_the_second_call_on_all_fail) {
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  EXPECT_EQ(cuMemAllocPitch(&address, &pitch, 64, 64, 4), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(cuMemAllocPitch(&address, &pitch, 64, 64, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(RequestedFailures, all_calls_fail) {
  CUdeviceptr address = 0;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(cuMemAllocManaged(&address, 4096, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(RequestedFailures, the_program_is_told_of_the_second_call_which_succeeds) {
  CUdeviceptr address = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cuMemAddressReserve(&address, 2 * kMiB, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(told, i == 0 ? "" : "cuMemAddressReserve ");
  }
}

TEST_F(RequestedFailures, pinned_memory_ends_at_its_limit) {
  void* host = nullptr;
  EXPECT_EQ(cuMemAllocHost(&host, 12 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocHost(&host, 12 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(RequestedFailures, another_process_holds_part_of_the_device) {
  std::size_t free = 0, total = 0;
  ASSERT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 4 * kGiB);
  EXPECT_LT(free, 3 * kGiB);
}

TEST_F(RequestedFailures, the_driver_has_the_version_it_was_given) {
  int version = 0, count = 0;
  ASSERT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, 12020);
  ASSERT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2);
}

TEST_F(RequestedFailures, functions_newer_than_the_driver_are_not_found) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_EQ(cuGetProcAddress("cuGreenCtxCreate", &found, 12020, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, nullptr);
  EXPECT_NE(status, CU_GET_PROC_ADDRESS_SUCCESS);
}

}  // namespace
}  // namespace cuwarden::contract
