// Physical handles, mappings and access.
#include "tests/contract/driver_test.hpp"

namespace cuwarden::contract {
namespace {

constexpr std::size_t kPage = 2 * kMiB;

class VirtualMemoryFacts : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    ASSERT_EQ(cuMemAddressReserve(&base, 8 * kPage, 0, 0, 0), CUDA_SUCCESS);
  }
  CUmemGenericAllocationHandle create(std::size_t size) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, size, &properties, 0), CUDA_SUCCESS);
    return handle;
  }

  CUmemAllocationProp properties{};
  CUmemAccessDesc access{};
  CUdeviceptr base = 0;
};

TEST_F(VirtualMemoryFacts, one_handle_mapped_twice_shows_the_same_bytes) {
  const CUmemGenericAllocationHandle handle = create(kPage);
  ASSERT_EQ(cuMemMap(base, kPage, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(base + kPage, kPage, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemSetAccess(base, 2 * kPage, &access, 1), CUDA_SUCCESS);
  int in = 4711, out = 0;
  ASSERT_EQ(cuMemcpyHtoD(base + 100, &in, sizeof in), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoH(&out, base + kPage + 100, sizeof out), CUDA_SUCCESS);
  EXPECT_EQ(out, in);
  ASSERT_EQ(cuMemUnmap(base, 2 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(base, 8 * kPage), CUDA_SUCCESS);
}

TEST_F(VirtualMemoryFacts, a_handle_is_mapped_whole_or_not_at_all) {
  const CUmemGenericAllocationHandle handle = create(2 * kPage);
  EXPECT_EQ(cuMemMap(base, kPage, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemMap(base, kPage, kPage, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemMap(base, 2 * kPage, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_NE(cuMemUnmap(base, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(base, 2 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
}

TEST_F(VirtualMemoryFacts, misuse_of_mappings_is_refused) {
  const CUmemGenericAllocationHandle handle = create(kPage);
  ASSERT_EQ(cuMemMap(base, kPage, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_NE(cuMemMap(base, kPage, 0, handle, 0), CUDA_SUCCESS) << "overlap";
  EXPECT_NE(cuMemAddressFree(base, 8 * kPage), CUDA_SUCCESS) << "still mapped";
  EXPECT_NE(cuMemsetD8(base, 1, kPage), CUDA_SUCCESS) << "no access granted";
  ASSERT_EQ(cuMemSetAccess(base, kPage, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8(base, 1, kPage), CUDA_SUCCESS);
  EXPECT_NE(cuMemSetAccess(base, 2 * kPage, &access, 1), CUDA_SUCCESS) << "half of it unmapped";
  ASSERT_EQ(cuMemUnmap(base, kPage), CUDA_SUCCESS);
  EXPECT_NE(cuMemsetD8(base, 1, kPage), CUDA_SUCCESS) << "use after unmap";
  EXPECT_EQ(cuMemUnmap(base, kPage), CUDA_SUCCESS) << "twice is no error";
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_NE(cuMemRelease(handle), CUDA_SUCCESS) << "double release";
}

TEST_F(VirtualMemoryFacts, bytes_are_held_until_neither_handle_nor_mapping_is_left) {
  const std::size_t before = free_bytes();
  const CUmemGenericAllocationHandle handle = create(kPage);
  EXPECT_EQ(before - free_bytes(), kPage);
  ASSERT_EQ(cuMemMap(base, kPage, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(before - free_bytes(), kPage);
  ASSERT_EQ(cuMemUnmap(base, kPage), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(VirtualMemoryFacts, a_stitched_range_works_and_each_piece_is_its_own_range) {
  const CUmemGenericAllocationHandle first = create(kPage), second = create(2 * kPage);
  ASSERT_EQ(cuMemMap(base, kPage, 0, first, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(base + kPage, 2 * kPage, 0, second, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemSetAccess(base, 3 * kPage, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8(base, 5, 3 * kPage), CUDA_SUCCESS);
  CUdeviceptr start = 0;
  std::size_t size = 0;
  ASSERT_EQ(cuMemGetAddressRange(&start, &size, base + kPage + 10), CUDA_SUCCESS);
  EXPECT_EQ(start, base + kPage);
  EXPECT_EQ(size, 2 * kPage);
  CUipcMemHandle ipc;
  EXPECT_EQ(cuIpcGetMemHandle(&ipc, base), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemUnmap(base, 3 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(first), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(second), CUDA_SUCCESS);
}

TEST_F(VirtualMemoryFacts,
       a_pointer_to_host_memory_in_a_range_says_so_and_a_little_of_it_takes_no_device_memory) {
  CUmemAllocationProp on_host = properties;
  on_host.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  const std::size_t before = free_bytes();
  CUmemGenericAllocationHandle host = 0;
  ASSERT_EQ(cuMemCreate(&host, kPage, &on_host, 0), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
  const CUmemGenericAllocationHandle onboard = create(kPage);
  ASSERT_EQ(cuMemMap(base, kPage, 0, onboard, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(base + kPage, kPage, 0, host, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemSetAccess(base, 2 * kPage, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8(base + kPage - 8, 3, 16), CUDA_SUCCESS);
  unsigned type = 0;
  ASSERT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, base), CUDA_SUCCESS);
  EXPECT_EQ(type, 2u);
  ASSERT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, base + kPage),
            CUDA_SUCCESS);
  EXPECT_EQ(type, 1u);
  ASSERT_EQ(cuMemUnmap(base, 2 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(host), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(onboard), CUDA_SUCCESS);
}

TEST_F(VirtualMemoryFacts, mapping_much_host_memory_takes_tables_on_the_device) {
  CUmemAllocationProp on_host = properties;
  on_host.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  constexpr std::size_t size = 2 * kGiB;
  CUdeviceptr start = 0;
  CUmemGenericAllocationHandle host = 0;
  ASSERT_EQ(cuMemAddressReserve(&start, size, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemCreate(&host, size, &on_host, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(start, size, 0, host, 0), CUDA_SUCCESS);
  const std::size_t before = free_bytes();
  ASSERT_EQ(cuMemSetAccess(start, size, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(before - free_bytes(), size / 4096 * 8);
  ASSERT_EQ(cuMemUnmap(start, size), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(cuMemRelease(host), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(start, size), CUDA_SUCCESS);
}

TEST_F(VirtualMemoryFacts, synchronous_copies_are_set_for_the_context_and_not_for_a_mapping) {
  const CUmemGenericAllocationHandle handle = create(kPage);
  ASSERT_EQ(cuMemMap(base, kPage, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemSetAccess(base, kPage, &access, 1), CUDA_SUCCESS);
  const unsigned on = 1;
  EXPECT_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, base),
            CUDA_ERROR_NOT_SUPPORTED);
  unsigned flags = 0, set = 0;
  ASSERT_EQ(cuCtxGetFlags(&flags), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetFlags(flags | CU_CTX_SYNC_MEMOPS), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxGetFlags(&set), CUDA_SUCCESS);
  EXPECT_EQ(set, flags | CU_CTX_SYNC_MEMOPS);
  ASSERT_EQ(cuMemUnmap(base, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
}

TEST_F(VirtualMemoryFacts, handles_outlive_their_context) {
  CUcontext second = nullptr;
  CUctxCreateParams parameters{};
  ASSERT_EQ(cuCtxCreate(&second, &parameters, 0, device), CUDA_SUCCESS);
  const CUmemGenericAllocationHandle handle = create(4 * kPage);
  ASSERT_EQ(cuCtxDestroy(second), CUDA_SUCCESS);
  const std::size_t with_handle = free_bytes();
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes() - with_handle, 4 * kPage);
}

}  // namespace
}  // namespace cuwarden::contract
