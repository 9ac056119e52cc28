// The kernel with which the pool copies, on the driver. It copies the same bytes as copies of the
// driver's, also on a device without free memory.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "runtime_hooks/pool/copy_kernel.hpp"

namespace cuwarden::pool {
namespace {

constexpr std::uint64_t KiB = 1024, MiB = 1024 * KiB;

class CopyKernelFacts : public testing::Test {
 protected:
  void SetUp() override {
    real.cuThreadExchangeStreamCaptureMode = cuThreadExchangeStreamCaptureMode;
    real.cuCtxGetCurrent = cuCtxGetCurrent;
    real.cuModuleLoadData = cuModuleLoadData;
    real.cuModuleGetFunction = cuModuleGetFunction;
    real.cuModuleUnload = cuModuleUnload;
    real.cuFuncLoad = cuFuncLoad;
    real.cuLaunchKernel = cuLaunchKernel;
    real.cuMemcpyDtoDAsync_v2 = cuMemcpyDtoDAsync_v2;
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDeviceGet(&device, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc_v2(&from, bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc_v2(&to, bytes), CUDA_SUCCESS);
    original.resize(bytes);
    std::mt19937 random(3);
    for (unsigned char& byte : original) byte = static_cast<unsigned char>(random());
    ASSERT_EQ(cuMemcpyHtoD_v2(from, original.data(), bytes), CUDA_SUCCESS);
  }
  void TearDown() override { EXPECT_EQ(cuDevicePrimaryCtxReset_v2(device), CUDA_SUCCESS); }

  // Returns parts of many sizes, in the order of addresses, with room between some of them.
  std::vector<CopyPart> some_parts() const {
    std::mt19937 random(5);
    std::vector<CopyPart> parts;
    for (std::uint64_t at = 0;;) {
      at += random() % 3 * 512;
      const std::uint64_t size = (1 + random() % 8) * (std::uint64_t{512} << random() % 9);
      if (at + size > bytes) return parts;
      parts.push_back({to + at, from + at, size});
      at += size;
    }
  }
  // True if the parts have been copied, and no byte between them.
  bool are_copied(const std::vector<CopyPart>& parts) {
    std::vector<unsigned char> expected(bytes), found(bytes);
    for (const CopyPart& part : parts)
      std::copy_n(original.begin() + static_cast<std::ptrdiff_t>(part.from - from), part.bytes,
                  expected.begin() + static_cast<std::ptrdiff_t>(part.to - to));
    EXPECT_EQ(cuMemcpyDtoH_v2(found.data(), to, bytes), CUDA_SUCCESS);
    return found == expected;
  }
  void clear() { ASSERT_EQ(cuMemsetD8_v2(to, 0, bytes), CUDA_SUCCESS); }

  // Returns the test's context, which is current.
  ContextId here() const { return {reinterpret_cast<std::uint64_t>(context)}; }

  static constexpr std::uint64_t bytes = 128 * MiB;
  driver::RealDriver real;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUdeviceptr from = 0, to = 0;
  std::vector<unsigned char> original;
};

TEST_F(CopyKernelFacts, parts_of_all_sizes_are_copied) {
  CopyKernel kernel;
  ASSERT_FALSE(kernel.is_here(real));
  ASSERT_TRUE(kernel.load(real, here()));
  ASSERT_TRUE(kernel.is_here(real));
  const std::vector<CopyPart> parts = some_parts();
  ASSERT_GT(parts.size(), CopyKernel::most_parts);
  clear();
  EXPECT_EQ(kernel.start(real, parts), CopyKernel::most_parts);
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_TRUE(are_copied({parts.begin(), parts.begin() + CopyKernel::most_parts}));
  EXPECT_TRUE(start_copies(real, kernel, parts));
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_TRUE(are_copied(parts));
  clear();
  EXPECT_TRUE(start_copies(real, CopyKernel(), parts)) << "by the driver's copies";
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_TRUE(are_copied(parts));
}

TEST_F(CopyKernelFacts, a_launch_needs_no_memory) {
  CopyKernel kernel;
  ASSERT_TRUE(kernel.load(real, here()));
  clear();
  const std::vector<CopyPart> parts = some_parts();
  for (std::uint64_t size = 16384 * MiB; size >= MiB; size /= 2)
    for (CUdeviceptr filled = 0; cuMemAlloc_v2(&filled, size) == CUDA_SUCCESS;) {
    }
  EXPECT_EQ(kernel.start(real, parts), CopyKernel::most_parts);
  EXPECT_TRUE(start_copies(real, kernel, parts));
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_TRUE(are_copied(parts));
}

TEST_F(CopyKernelFacts, the_kernel_is_launched_in_its_own_context_alone) {
  CopyKernel kernel;
  ASSERT_TRUE(kernel.load(real, here()));
  CUctxCreateParams parameters{};
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate_v4(&other, &parameters, 0, device), CUDA_SUCCESS);
  EXPECT_FALSE(kernel.is_here(real));
  EXPECT_EQ(kernel.start(real, some_parts()), 0u);
  CopyKernel loaded;
  EXPECT_FALSE(loaded.load(real, here())) << "another context is current";
  EXPECT_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  EXPECT_TRUE(kernel.is_here(real));
}

}  // namespace
}  // namespace cuwarden::pool
