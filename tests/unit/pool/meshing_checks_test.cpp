// The checks of meshing: that two addresses of one page show the same contents, and that copies are
// right.
#include "tests/unit/pool/meshing_fixture.hpp"

namespace cuwarden::pool {
namespace {

TEST_P(MeshingEitherWayTest, nothing_is_moved_if_two_addresses_of_a_page_differ) {
  fill(100 * MiB, 9);
  keep_one_of(10);
  pool.give_back(real, no_device, UINT64_MAX);
  const std::uint64_t before = taken();
  driver->second_address_differs = true;
  EXPECT_EQ(mesh(), 0u);
  EXPECT_EQ(counts().differing_bytes, page);
  EXPECT_EQ(counts().meshed_pages, 0u);
  EXPECT_EQ(taken(), before);
  EXPECT_TRUE(all_is_right());
  // The device is not tried again, although it would seem right now.
  driver->second_address_differs = false;
  EXPECT_EQ(mesh(), 0u);
  EXPECT_EQ(pauses, 0);
  EXPECT_EQ(pool.meshable_bytes(real, DeviceOrdinal{0}), 0u);
  expect_all_goes();
}

TEST_F(MeshingTest, nothing_is_moved_if_a_second_address_takes_memory) {
  fill(100 * MiB, 9);
  keep_one_of(10);
  driver->second_address_takes_memory = true;
  EXPECT_EQ(mesh(), 0u);
  EXPECT_EQ(counts().differing_bytes, 0u);
  EXPECT_GE(counts().unshared_bytes, page);
  EXPECT_TRUE(all_is_right());
  // Another process may have taken the memory, so that this is looked at again.
  driver->second_address_takes_memory = false;
  EXPECT_NE(mesh(), 0u);
  EXPECT_EQ(counts().unshared_bytes, 0u);
  EXPECT_TRUE(all_is_right());
}

TEST_F(MeshingTest, the_check_of_two_addresses_is_made_once_and_harms_no_block) {
  fill(100 * MiB, 9);
  keep_one_of(10);
  int copies_to_host = 0;
  static int* count = nullptr;
  count = &copies_to_host;
  driver::RealDriver counting = real;
  counting.cuMemcpyDtoH_v2 = [](void* to, CUdeviceptr from, size_t bytes) {
    return ++*count, copy_to_host(to, from, bytes);
  };
  FakePause pause(INT32_MAX, 1);
  ASSERT_GT(pool.mesh(counting, DeviceOrdinal{0}, pause, {1, 1, 1}), 0u);
  EXPECT_GT(copies_to_host, 0);
  EXPECT_TRUE(all_is_right());
  copies_to_host = 0;
  ASSERT_GT(pool.mesh(counting, DeviceOrdinal{0}, pause, {1, 1, 1}), 0u);
  EXPECT_EQ(copies_to_host, 0);
  EXPECT_TRUE(all_is_right());
}

TEST_P(MeshingEitherWayTest, a_wrong_copy_is_noticed_where_copies_are_verified) {
  fill(100 * MiB, 9);
  keep_one_of(10);
  pool.give_back(real, no_device, UINT64_MAX);
  verifies = true;
  EXPECT_GT(mesh(), 0u);
  EXPECT_TRUE(all_is_right());
  driver->copies_are_wrong = true;
  EXPECT_EQ(mesh(), 0u);
  EXPECT_EQ(counts().differing_bytes, page);
  EXPECT_TRUE(all_is_right());
  driver->copies_are_wrong = false;
  expect_all_goes();
}

TEST_P(MeshingEitherWayTest, a_wrong_copy_damages_blocks_where_copies_are_not_verified) {
  fill(100 * MiB, 9);
  keep_one_of(10);
  driver->copies_are_wrong = true;
  EXPECT_GT(mesh(), 0u);
  EXPECT_FALSE(all_is_right());
}

TEST_F(MeshingTest, all_memory_that_is_told_to_be_meshable_can_be_had) {
  fill(200 * MiB, 9);
  keep_one_of(10);
  pool.give_back(real, no_device, UINT64_MAX);
  const std::uint64_t told = pool.meshable_bytes(real, DeviceOrdinal{0});
  EXPECT_GT(told, 100 * MiB);
  EXPECT_EQ(counts().meshed_pages, 0u);
  EXPECT_GE(mesh(told), told);
}

}  // namespace
}  // namespace cuwarden::pool
