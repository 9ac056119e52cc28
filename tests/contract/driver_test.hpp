// Fixture of the tests of the driver's behaviour. They use libcuda.so.1 as any program does, so
// that the same tests check the simulated driver and a real one.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

namespace cuwarden::contract {

constexpr std::size_t kKiB = 1024;         // bytes of a kibibyte
constexpr std::size_t kMiB = 1024 * kKiB;  // bytes of a mebibyte
constexpr std::size_t kGiB = 1024 * kMiB;  // bytes of a gibibyte

// Returns the free bytes of the current context's device, as the driver tells; fails the test if it
// does not.
inline std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  return free;
}

// Gives every test of the driver a context of its own on device 0.
class DriverTest : public testing::Test {
 protected:
  // Makes the test's context on device 0, and finds out if the driver is the simulated one.
  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDeviceGet(&device, 0), CUDA_SUCCESS);
    CUctxCreateParams parameters{};
    ASSERT_EQ(cuCtxCreate(&context, &parameters, 0, device), CUDA_SUCCESS);
    char name[64] = {};
    ASSERT_EQ(cuDeviceGetName(name, sizeof name, device), CUDA_SUCCESS);
    simulated = std::strcmp(name, "Simulated GPU") == 0;
  }
  // Destroys the test's context; fails the test if the driver refuses.
  void TearDown() override {
    if (context == nullptr) return;
    EXPECT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
  }

  // Allocates memory until about `room` bytes of the device are free. Fails the test if only `room`
  // bytes or less are free at the start.
  void leave_room(std::size_t room) {
    const std::size_t free = free_bytes();
    ASSERT_GT(free, room);
    CUdeviceptr ballast = 0;
    ASSERT_EQ(cuMemAlloc(&ballast, (free - room) / (2 * kMiB) * (2 * kMiB)), CUDA_SUCCESS);
  }
  // Allocates blocks of `size` bytes until the driver refuses, and returns their addresses.
  static std::vector<CUdeviceptr> fill(std::size_t size) {
    std::vector<CUdeviceptr> all;
    CUdeviceptr address = 0;
    while (cuMemAlloc(&address, size) == CUDA_SUCCESS) all.push_back(address);
    return all;
  }

  // The device of all tests: the one with the ordinal 0.
  CUdevice device = 0;
  // The test's context, which is current during the test; null if it could not be made.
  CUcontext context = nullptr;
  // True if the tests run on the simulated driver.
  bool simulated = false;
};

}  // namespace cuwarden::contract
