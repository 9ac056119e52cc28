// Slabs: the driver cuts small requests from them, and gets some back when a program frees.
#include "tests/contract/driver_test.hpp"

namespace cuwarden::contract {
namespace {

constexpr std::size_t kRoom = 512 * kMiB;

using SlabFacts = DriverTest;

TEST_F(SlabFacts, a_checkerboard_of_small_blocks_gives_nothing_back) {
  for (const std::size_t size : {64 * kKiB, 256 * kKiB, 1 * kMiB}) {
    SCOPED_TRACE(size);
    CUdeviceptr ballast = 0;
    ASSERT_EQ(cuMemAlloc(&ballast, (free_bytes() - kRoom) / (2 * kMiB) * (2 * kMiB)), CUDA_SUCCESS);
    const std::vector<CUdeviceptr> all = fill(size);
    ASSERT_GE(all.size() * size, kRoom - 4 * kMiB);
    const std::size_t before = free_bytes();
    for (std::size_t i = 0; i < all.size(); i += 2) ASSERT_EQ(cuMemFree(all[i]), CUDA_SUCCESS);
    EXPECT_EQ(free_bytes(), before);
    CUdeviceptr large = 0;
    EXPECT_EQ(cuMemAlloc(&large, 4 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
    for (std::size_t i = 1; i < all.size(); i += 2) ASSERT_EQ(cuMemFree(all[i]), CUDA_SUCCESS);
    EXPECT_GE(free_bytes(), before + kRoom - 4 * kMiB);
    ASSERT_EQ(cuMemFree(ballast), CUDA_SUCCESS);
  }
}

// A slab is freed with probability p^n if n blocks share it and each is freed with probability p.
TEST_F(SlabFacts, freeing_nine_tenths_at_random_returns_only_whole_slabs) {
  leave_room(kRoom);
  struct Row {
    std::size_t size;
    double least, most;  // share of the room that comes back
  };
  for (const Row& row :
       {Row{64 * kKiB, 0.005, 0.09}, Row{256 * kKiB, 0.33, 0.53}, Row{1 * kMiB, 0.70, 0.90}}) {
    SCOPED_TRACE(row.size);
    std::vector<CUdeviceptr> all = fill(row.size);
    std::shuffle(all.begin(), all.end(), std::mt19937(7));
    const std::size_t before = free_bytes();
    const std::size_t kept = all.size() / 10;
    for (std::size_t i = kept; i < all.size(); ++i) ASSERT_EQ(cuMemFree(all[i]), CUDA_SUCCESS);
    const double share = static_cast<double>(free_bytes() - before) / static_cast<double>(kRoom);
    EXPECT_GT(share, row.least);
    EXPECT_LT(share, row.most);
    for (std::size_t i = 0; i < kept; ++i) ASSERT_EQ(cuMemFree(all[i]), CUDA_SUCCESS);
  }
}

TEST_F(SlabFacts, at_two_mebibytes_and_above_a_checkerboard_costs_nothing) {
  leave_room(kRoom);
  for (const std::size_t size : {2 * kMiB, 16 * kMiB}) {
    SCOPED_TRACE(size);
    const std::vector<CUdeviceptr> all = fill(size);
    for (std::size_t i = 0; i < all.size(); i += 2) ASSERT_EQ(cuMemFree(all[i]), CUDA_SUCCESS);
    CUdeviceptr large = 0;
    const std::size_t free = free_bytes();
    EXPECT_GE(free, kRoom / 2 - 16 * kMiB);
    EXPECT_EQ(cuMemAlloc(&large, free - 4 * kMiB), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFree(large), CUDA_SUCCESS);
    for (std::size_t i = 1; i < all.size(); i += 2) ASSERT_EQ(cuMemFree(all[i]), CUDA_SUCCESS);
  }
}

TEST_F(SlabFacts, requests_above_one_mebibyte_are_rounded_to_two) {
  const auto cost = [](std::size_t size) {
    const std::size_t before = free_bytes();
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, size), CUDA_SUCCESS);
    const std::size_t taken = before - free_bytes();
    EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
    return taken;
  };
  EXPECT_EQ(cost(1 * kMiB + 1), 2 * kMiB);
  EXPECT_EQ(cost(3 * kMiB / 2), 2 * kMiB);
  EXPECT_EQ(cost(3 * kMiB), 4 * kMiB);
  EXPECT_EQ(cost(4 * kMiB), 4 * kMiB);
}

TEST_F(SlabFacts, the_rest_of_a_request_of_one_page_serves_small_requests) {
  for (const std::size_t size : {kMiB + 512, kMiB + kMiB / 2, 2 * kMiB - 1024}) {
    SCOPED_TRACE(size);
    CUdeviceptr large = 0;
    std::vector<CUdeviceptr> small;
    ASSERT_EQ(cuMemAlloc(&large, size), CUDA_SUCCESS);
    const std::size_t with_large = free_bytes();
    for (int i = 0; i < 2; ++i) {
      small.push_back(0);
      ASSERT_EQ(cuMemAlloc(&small.back(), 512), CUDA_SUCCESS);
    }
    EXPECT_EQ(free_bytes(), with_large);
    const auto page = [](CUdeviceptr address) { return address / (2 * kMiB); };
    EXPECT_EQ(page(small[0]), page(large));
    EXPECT_EQ(page(small[1]), page(large));
    ASSERT_EQ(cuMemFree(large), CUDA_SUCCESS);
    EXPECT_EQ(free_bytes(), with_large) << "the small ones keep the page";
    for (const CUdeviceptr made : small) ASSERT_EQ(cuMemFree(made), CUDA_SUCCESS);
    EXPECT_EQ(free_bytes(), with_large + 2 * kMiB);
  }
}

TEST_F(SlabFacts, the_rest_of_the_last_page_of_several_serves_no_request) {
  CUdeviceptr large = 0, small = 0;
  ASSERT_EQ(cuMemAlloc(&large, 3 * kMiB), CUDA_SUCCESS);
  const std::size_t with_large = free_bytes();
  ASSERT_EQ(cuMemAlloc(&small, 512), CUDA_SUCCESS);
  EXPECT_EQ(with_large - free_bytes(), 2 * kMiB);
  ASSERT_EQ(cuMemFree(small), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(large), CUDA_SUCCESS);
}

TEST_F(SlabFacts, small_requests_are_cut_in_steps_of_512_bytes) {
  for (const auto& [size, step] :
       {std::pair<std::size_t, std::size_t>{513, 1024}, {512, 512}, {1, 512}}) {
    const std::size_t before = free_bytes();
    std::vector<CUdeviceptr> all;
    // These allocations fill one slab; the next one opens the second.
    for (std::size_t i = 0; i < 2 * kMiB / step; ++i) {
      CUdeviceptr address = 0;
      ASSERT_EQ(cuMemAlloc(&address, size), CUDA_SUCCESS);
      all.push_back(address);
    }
    EXPECT_LE(before - free_bytes(), 2 * kMiB);
    CUdeviceptr extra = 0;
    ASSERT_EQ(cuMemAlloc(&extra, 1 * kMiB), CUDA_SUCCESS);
    EXPECT_GE(before - free_bytes(), 2 * kMiB);
    all.push_back(extra);
    for (const CUdeviceptr address : all) ASSERT_EQ(cuMemFree(address), CUDA_SUCCESS);
    EXPECT_EQ(free_bytes(), before);
  }
}

}  // namespace
}  // namespace cuwarden::contract
