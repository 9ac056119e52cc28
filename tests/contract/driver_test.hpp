// Shared by the tests of the driver's behaviour. They use libcuda.so.1 as any program does, so that
// the same tests hold the simulated driver and a real one to the same facts.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

namespace cuwarden::contract {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;
constexpr std::size_t kGiB = 1024 * kMiB;

inline std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  return free;
}

// Gives every test a context of its own.
class DriverTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDeviceGet(&device, 0), CUDA_SUCCESS);
    CUctxCreateParams parameters{};
    ASSERT_EQ(cuCtxCreate(&context, &parameters, 0, device), CUDA_SUCCESS);
    char name[64] = {};
    ASSERT_EQ(cuDeviceGetName(name, sizeof name, device), CUDA_SUCCESS);
    simulated = std::strcmp(name, "Simulated GPU") == 0;
  }
  void TearDown() override {
    if (context == nullptr) return;
    EXPECT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
  }

  // Allocates memory until about `room` bytes of the device are free.
  void leave_room(std::size_t room) {
    const std::size_t free = free_bytes();
    ASSERT_GT(free, room);
    CUdeviceptr ballast = 0;
    ASSERT_EQ(cuMemAlloc(&ballast, (free - room) / (2 * kMiB) * (2 * kMiB)), CUDA_SUCCESS);
  }
  // Allocates blocks of `size` until the driver refuses, and returns them.
  static std::vector<CUdeviceptr> fill(std::size_t size) {
    std::vector<CUdeviceptr> all;
    CUdeviceptr address = 0;
    while (cuMemAlloc(&address, size) == CUDA_SUCCESS) all.push_back(address);
    return all;
  }

  CUdevice device = 0;
  CUcontext context = nullptr;
  // True if the tests run on the simulated driver.
  bool simulated = false;
};

}  // namespace cuwarden::contract
