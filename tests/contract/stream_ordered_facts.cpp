// Stream-ordered memory and its memory pools: when freed memory can be used again, and what the
// driver counts as used.
#include "tests/comes_about.hpp"
#include "tests/contract/driver_test.hpp"

namespace cuwarden::contract {
namespace {

constexpr std::size_t kRoom = 512 * kMiB;

class StreamOrderedFacts : public DriverTest {
 protected:
  // Allocates nearly all free memory in the stream, and frees it there. Returns its bytes.
  static std::size_t free_most(CUstream stream) {
    const std::size_t most = free_bytes() / (64 * kMiB) * (64 * kMiB) - 64 * kMiB;
    CUdeviceptr block = 0;
    EXPECT_EQ(cuMemAllocAsync(&block, most, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeAsync(block, stream), CUDA_SUCCESS);
    return most;
  }
};

TEST_F(StreamOrderedFacts, memory_freed_in_stream_order_cannot_be_reused_before_a_synchronisation) {
  leave_room(kRoom);
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const std::size_t most = free_most(stream);
  CUdeviceptr other = 0;
  EXPECT_EQ(cuMemAlloc(&other, most), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&other, most), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&other, most), CUDA_SUCCESS);
}

TEST_F(StreamOrderedFacts,
       memory_freed_in_stream_order_is_reusable_once_an_event_behind_the_free_is_synchronised) {
  leave_room(kRoom);
  CUstream stream = nullptr, elsewhere = nullptr;
  CUmemoryPool pool = nullptr;
  CUevent before = nullptr, behind = nullptr;
  ASSERT_EQ(cuDeviceGetDefaultMemPool(&pool, device), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&elsewhere, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&before, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&behind, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  const std::size_t most = free_most(stream);
  CUdeviceptr other = 0;
  ASSERT_EQ(cuEventRecord(behind, stream), CUDA_SUCCESS);
  ASSERT_TRUE(comes_about([&] { return cuStreamQuery(stream) != CUDA_ERROR_NOT_READY; }));
  ASSERT_EQ(cuEventQuery(behind), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&other, most), CUDA_ERROR_OUT_OF_MEMORY) << "reached, and said to be";
  ASSERT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&other, most), CUDA_ERROR_OUT_OF_MEMORY) << "trimmed";
  ASSERT_EQ(cuEventRecord(before, elsewhere), CUDA_SUCCESS);
  ASSERT_EQ(cuEventSynchronize(before), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(elsewhere), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&other, most), CUDA_ERROR_OUT_OF_MEMORY) << "another stream";
  ASSERT_EQ(cuEventSynchronize(behind), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&other, most), CUDA_SUCCESS);
}

TEST_F(StreamOrderedFacts, another_stream_waits_for_frees_in_stream_order) {
  leave_room(kRoom);
  CUstream first = nullptr, second = nullptr;
  ASSERT_EQ(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const std::size_t most = free_bytes() / (64 * kMiB) * (64 * kMiB) - 64 * kMiB;
  CUdeviceptr block = 0;
  ASSERT_EQ(cuMemAllocAsync(&block, most, first), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(block, first), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocAsync(&block, most, second), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(block, second), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(StreamOrderedFacts, destroying_an_array_leaves_frees_in_stream_order_pending) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = shape.Height = 256;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  CUarray array = nullptr;
  CUmipmappedArray levels = nullptr;
  ASSERT_EQ(cuArray3DCreate(&array, &shape), CUDA_SUCCESS);
  ASSERT_EQ(cuMipmappedArrayCreate(&levels, &shape, 2), CUDA_SUCCESS);
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  CUdeviceptr block = 0;
  ASSERT_EQ(cuMemAllocAsync(&block, 64 * kMiB, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(block, stream), CUDA_SUCCESS);
  const std::size_t before = free_bytes();
  ASSERT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
  ASSERT_EQ(cuMipmappedArrayDestroy(levels), CUDA_SUCCESS);
  EXPECT_LT(free_bytes(), before + 64 * kMiB);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_GE(free_bytes(), before + 64 * kMiB);
}

TEST_F(StreamOrderedFacts, a_pool_goes_on_counting_as_used_what_cuMemFree_frees) {
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuDeviceGetDefaultMemPool(&pool, device), CUDA_SUCCESS);
  const auto used = [&] {
    cuuint64_t bytes = 0;
    EXPECT_EQ(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bytes), CUDA_SUCCESS);
    return bytes;
  };
  const cuuint64_t before = used();
  CUdeviceptr freed_in_order = 0, freed_otherwise = 0;
  ASSERT_EQ(cuMemAllocAsync(&freed_in_order, 4 * kMiB, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocAsync(&freed_otherwise, 2 * kMiB, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(used(), before + 6 * kMiB);
  ASSERT_EQ(cuMemFreeAsync(freed_in_order, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(freed_otherwise), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(used(), before + 2 * kMiB);
}

TEST_F(StreamOrderedFacts, the_driver_trims_a_hoarding_pool_by_itself) {
  leave_room(kRoom);
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuDeviceGetDefaultMemPool(&pool, device), CUDA_SUCCESS);
  cuuint64_t keep_all = ~cuuint64_t{0}, keep_none = 0, reserved = 0;
  ASSERT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all),
            CUDA_SUCCESS);
  const std::size_t most = kRoom - 128 * kMiB;
  CUdeviceptr block = 0;
  ASSERT_EQ(cuMemAllocAsync(&block, most, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(block, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  ASSERT_EQ(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved),
            CUDA_SUCCESS);
  EXPECT_GE(reserved, most);
  EXPECT_EQ(cuMemAlloc(&block, most), CUDA_SUCCESS);
  ASSERT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_none),
            CUDA_SUCCESS);
}

TEST_F(StreamOrderedFacts, a_destroyed_pool_is_refused_and_lasts_until_its_memory_is_freed) {
  constexpr std::size_t kBlock = 256 * kMiB;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemoryPool pool = nullptr;
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  for (const bool in_order : {true, false}) {
    ASSERT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
    const std::size_t before = free_bytes();
    CUdeviceptr block = 0, refused = 0;
    ASSERT_EQ(cuMemAllocFromPoolAsync(&block, kBlock, pool, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    ASSERT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
    EXPECT_EQ(free_bytes(), before - kBlock) << "the memory stays";
    EXPECT_EQ(cuMemsetD8(block, 1, kBlock), CUDA_SUCCESS);
    const auto expect_refused = [&] {
      cuuint64_t bytes = 0;
      EXPECT_EQ(cuMemAllocFromPoolAsync(&refused, kMiB, pool, stream), CUDA_ERROR_INVALID_VALUE);
      EXPECT_EQ(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes),
                CUDA_ERROR_INVALID_VALUE);
      EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
      EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    };
    expect_refused();
    ASSERT_EQ(in_order ? cuMemFreeAsync(block, stream) : cuMemFree(block), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(free_bytes(), before);
    expect_refused();
  }
}

}  // namespace
}  // namespace cuwarden::contract
