// Fixture of the tests on a device that is full.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>

#include "tests/contract/driver_test.hpp"
#include "tests/kernels_in_ptx.hpp"

namespace cuwarden::contract {

// Makes a module and launches its kernel while there is memory. A test then fills the device.
class FullDeviceTest : public DriverTest {
 protected:
  // Loads the kernel `plain`, launches it, and waits for it.
  void SetUp() override {
    DriverTest::SetUp();
    ASSERT_EQ(cuModuleLoadData(&plain_module, kernels::plain_code.c_str()), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&plain, plain_module, "plain"), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&out, 4096), CUDA_SUCCESS);
    ASSERT_EQ(launch(plain), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  // Launches one thread of a kernel of tests/kernels_in_ptx.hpp. Returns the driver's result.
  CUresult launch(CUfunction function) { return kernels::launch(function, out); }
  // Fills the device, so that no page is left, but for blocks of `room` bytes in all that
  // make_room() frees.
  void fill_but_for(std::size_t room) {
    ASSERT_EQ(cuMemAlloc(&spare, room), CUDA_SUCCESS);
    // Blocks of 1 MiB leave no half page behind.
    for (std::size_t size = 16 * kGiB; size >= kMiB; size /= 2) fill(size);
  }
  // Frees the memory that fill_but_for() set aside.
  void make_room() { ASSERT_EQ(cuMemFree(spare), CUDA_SUCCESS); }

  // Module of the kernel `plain`, which needs no local memory.
  CUmodule plain_module = nullptr;
  // The kernel `plain`, which was launched before the device was filled.
  CUfunction plain = nullptr;
  // Device address to which launched kernels store their number.
  CUdeviceptr out = 0;
  // Device address of the memory that make_room() frees; 0 before fill_but_for().
  CUdeviceptr spare = 0;
};

}  // namespace cuwarden::contract
