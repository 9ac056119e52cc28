// Meshing on a device without free memory, which begins by moving some blocks to host memory.
#include "tests/repetitions.hpp"
#include "tests/unit/pool/meshing_fixture.hpp"

namespace cuwarden::pool {
namespace {

class EvictionTest : public MeshingEitherWayTest {
 protected:
  // Allocates 350 of the device's 400 MiB in blocks of 64 KiB. Frees three of four by chance, but
  // none at the start of a piece; and then all in the first 80 MiB of addresses. At last, others
  // take all free memory of the device.
  void fill_and_free() {
    for (int i = 0; i < 5600; ++i) ASSERT_NE(allocate(65536), 0u);
    const std::uint64_t start = blocks.begin()->first;
    keep_runs_apart(4);
    // Frees the first blocks, whose pages were mapped alone or in twos.
    while (!blocks.empty() && blocks.begin()->first < start + 80 * MiB) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
    of_others = std::exchange(driver->free_bytes, 0);
  }
  // Returns the bytes of host memory that the pool has.
  static std::uint64_t on_host() {
    std::uint64_t sum = 0;
    for (const auto& [handle, memory] : driver->handles) sum += memory.on_host ? memory.bytes : 0;
    return sum;
  }
  // The bytes of the device that others have.
  std::uint64_t of_others = 0;
};

INSTANTIATE_TEST_SUITE_P(copies, EvictionTest, testing::Bool(), &way_of_copies);

TEST_P(EvictionTest, meshing_begins_by_moving_blocks_to_the_host_and_brings_them_back) {
  fill_and_free();
  const std::uint64_t before = counts().held_bytes;
  EXPECT_EQ(mesh(), 0u) << "without host memory, nothing can begin";
  most_host_bytes = 16 * MiB;
  const std::uint64_t gained = mesh(40 * MiB);
  EXPECT_GE(gained, 40 * MiB);
  EXPECT_EQ(driver->free_bytes, gained);
  EXPECT_EQ(counts().held_bytes, before - gained);
  EXPECT_EQ(on_host(), 0u);
  EXPECT_EQ(counts().pauses, static_cast<unsigned>(pauses))
      << "blocks go to the host and back in a pause of other moves";
  EXPECT_TRUE(all_is_right());
  driver->free_bytes += of_others;
  expect_all_goes();
}

TEST_P(EvictionTest, no_more_host_memory_is_taken_than_may_be) {
  fill_and_free();
  most_host_bytes = page - 1;
  EXPECT_EQ(mesh(), 0u);
  most_host_bytes = 16 * MiB;
  driver->maps_host = false;
  EXPECT_EQ(mesh(), 0u) << "devices that cannot map host memory";
  EXPECT_EQ(pauses, 0);
  driver->maps_host = true;
  driver->free_bytes += of_others;
  expect_all_goes();
}

// The driver makes no memory larger than a page, as if others had taken what it got back.
TEST_P(EvictionTest, blocks_stay_in_host_memory_until_there_is_room_again) {
  fill_and_free();
  most_host_bytes = 16 * MiB;
  driver->largest_handle = page;
  const std::uint64_t before = counts().held_bytes, gained = mesh(8 * MiB);
  EXPECT_GE(gained, 8 * MiB);
  EXPECT_EQ(counts().held_bytes, before - gained);
  EXPECT_EQ(driver->free_bytes, gained);
  EXPECT_GT(on_host(), 0u);
  EXPECT_TRUE(all_is_right());
  // Blocks come and go in host memory, too.
  keep_one_of(2);
  EXPECT_TRUE(all_is_right());
  EXPECT_GE(counts().held_bytes + on_host(), counts().live_bytes);
  driver->largest_handle = UINT64_MAX;
  EXPECT_GT(mesh(4 * MiB, INT32_MAX, INT32_MAX, UINT64_MAX / 2), 0u);
  EXPECT_EQ(on_host(), 0u);
  EXPECT_TRUE(all_is_right());
  driver->free_bytes += of_others;
  expect_all_goes();
}

TEST_P(EvictionTest, blocks_in_host_memory_come_back_without_a_refusal_once_there_is_room) {
  fill_and_free();
  most_host_bytes = 16 * MiB;
  driver->largest_handle = page;
  EXPECT_GT(mesh(8 * MiB), 0u);
  ASSERT_EQ(counts().evicted_bytes, on_host());
  ASSERT_GT(on_host(), 0u);
  driver->largest_handle = UINT64_MAX;
  driver->free_bytes += of_others;
  FakePause pause;
  pool.bring_back_evicted(real, DeviceOrdinal{0}, pause, true);
  EXPECT_EQ(pause.asked_for(), 1);
  EXPECT_EQ(on_host() + counts().evicted_bytes, 0u);
  EXPECT_EQ(counts().held_bytes, taken());
  EXPECT_TRUE(all_is_right());
  expect_all_goes();
}

TEST_P(EvictionTest, blocks_in_host_memory_are_freed_like_others) {
  fill_and_free();
  most_host_bytes = 16 * MiB;
  driver->largest_handle = page;
  EXPECT_GT(mesh(8 * MiB), 0u);
  ASSERT_GT(on_host(), 0u);
  driver->largest_handle = UINT64_MAX;
  driver->free_bytes += of_others;
  // Pages without blocks are given back although others hold blocks.
  const std::uint64_t kept = blocks.rbegin()->first;
  while (blocks.size() > 1) free_one();
  ASSERT_EQ(blocks.begin()->first, kept);
  pool.give_back(real, no_device, UINT64_MAX);
  EXPECT_EQ(on_host() + counts().evicted_bytes, 0u);
  expect_all_goes();
}

TEST_P(EvictionTest, savings_beside_an_eviction_end_the_search_for_more) {
  for (const std::uint64_t enough : {80 * MiB, 84 * MiB, 100 * MiB}) {
    fill_and_free();
    most_host_bytes = 16 * MiB;
    const std::uint64_t gained = mesh(80 * MiB, INT32_MAX, INT32_MAX, enough);
    EXPECT_GE(gained, 80 * MiB);
    EXPECT_LE(gained, enough + 20 * MiB);
    EXPECT_LE(pauses, 3);
    EXPECT_EQ(counts().pause_ns, 10 * counts().pauses);
    driver->free_bytes += of_others;
    while (!blocks.empty()) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
  }
  expect_all_goes();
}

TEST_P(EvictionTest, a_failure_of_any_call_leaves_all_blocks_intact) {
  // Returns how many calls may fail while memory is saved beside an eviction.
  const auto calls_in_all = [&] {
    constexpr int many = 1'000'000;
    fill_and_free();
    most_host_bytes = 16 * MiB;
    driver->fail_after = many;
    mesh(30 * MiB);
    driver->free_bytes += of_others;
    while (!blocks.empty()) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
    return many - std::exchange(driver->fail_after, -1);
  };
  const int all = calls_in_all();
  int failed = 0;
  // The eviction makes the first calls and the last ones. Under a sanitizer, fewer calls fail.
  const int step = test::is_sanitized ? 29 : 7, edge = test::is_sanitized ? 3 : 30;
  for (int calls = 0; calls < all; calls += calls < edge || calls > all - edge ? 1 : step) {
    fill_and_free();
    most_host_bytes = 16 * MiB;
    driver->fail_after = calls;
    mesh(30 * MiB);
    ASSERT_TRUE(driver->under_way.empty()) << "a late copy would overwrite other blocks";
    failed += driver->fail_after < 0 ? 1 : 0;
    driver->fail_after = -1;
    driver->free_bytes += of_others;
    ASSERT_TRUE(all_is_right()) << calls;
    ASSERT_EQ(counts().held_bytes, taken()) << calls;
    ASSERT_EQ(counts().lost_bytes, 0u);
    ASSERT_EQ(driver->reservations.size(), 1u);
    while (!blocks.empty()) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
    ASSERT_EQ(taken(), 0u) << calls;
    ASSERT_EQ(on_host(), 0u) << calls;
  }
  EXPECT_GT(failed, test::is_sanitized ? 8 : 60);
  expect_all_goes();
}

// The driver refuses the host memory at the blocks' addresses, and then the old memory, too.
TEST_P(EvictionTest, blocks_without_memory_count_as_lost_and_others_stay_right) {
  for (int maps = 1; counts().lost_bytes == 0 && maps < 200; ++maps) {
    fill_and_free();
    most_host_bytes = 16 * MiB;
    driver->maps_refused_after = maps;
    mesh(30 * MiB);
    driver->maps_refused_after = -1;
    driver->free_bytes += of_others;
    const std::size_t before = blocks.size();
    std::erase_if(blocks, [](const auto& block) { return !driver->is_mapped(block.first, 1); });
    ASSERT_EQ(blocks.size() != before, counts().lost_bytes != 0) << maps;
    ASSERT_TRUE(all_is_right()) << maps;
    while (!blocks.empty()) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
  }
  EXPECT_GT(counts().lost_bytes, 0u);
  // No new block lies at the lost addresses.
  for (int i = 0; i < 500; ++i) ASSERT_NE(allocate(65536), 0u);
  EXPECT_TRUE(all_is_right());
}

TEST_P(EvictionTest, contents_stay_right_over_many_evictions) {
  const std::uint64_t rounds = test::repetitions(12, 400);
  int evicted = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    fill_and_free();
    for (int request = 0; request < 6; ++request) {
      most_host_bytes = random() % 4 == 0 ? 8 * MiB : 16 * MiB;
      driver->largest_handle =
          random() % 3 == 0 ? page : (random() % 3 == 0 ? 4 * page : UINT64_MAX);
      driver->fail_after = random() % 4 == 0 ? static_cast<int>(random() % 500) : -1;
      mesh((1 + random() % 30) * MiB, 1 + static_cast<int>(random() % 8), INT32_MAX,
           random() % 60 * MiB, random() % 2 == 0 ? 0 : 16 * MiB);
      evicted += counts().evicted_bytes != 0 ? 1 : 0;
      driver->fail_after = -1;
      driver->largest_handle = UINT64_MAX;
      ASSERT_TRUE(driver->under_way.empty());
      ASSERT_TRUE(all_is_right()) << round << ' ' << request;
      ASSERT_EQ(counts().evicted_bytes, on_host());
      ASSERT_EQ(counts().lost_bytes, 0u);
      // Others take what is free, blocks go, and new ones come, also into host memory.
      if (random() % 2 == 0) of_others += std::exchange(driver->free_bytes, 0);
      ASSERT_EQ(counts().held_bytes, room - driver->free_bytes - of_others) << round;
      for (int block = 0; block < 100 && !blocks.empty(); ++block) free_one();
      for (int block = 0; block < 100; ++block) allocate(std::uint64_t{4096} << random() % 5);
      ASSERT_TRUE(all_is_right()) << round << ' ' << request;
      if (random() % 2 == 0) pool.give_back(real, no_device, UINT64_MAX);
    }
    driver->free_bytes += of_others;
    while (!blocks.empty()) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
    pool.give_back_start_memory(real, DeviceOrdinal{0});
    ASSERT_EQ(on_host(), 0u);
    ASSERT_EQ(taken(), 0u);
  }
  EXPECT_GT(evicted, 0);
  expect_all_goes();
}

TEST_P(EvictionTest, a_wrong_copy_is_noticed_and_leaves_blocks_in_device_memory) {
  fill_and_free();
  verifies = true;
  most_host_bytes = 16 * MiB;
  driver->copies_are_wrong = true;
  EXPECT_EQ(mesh(8 * MiB), 0u);
  driver->copies_are_wrong = false;
  EXPECT_EQ(counts().differing_bytes, page);
  EXPECT_EQ(on_host(), 0u);
  EXPECT_TRUE(all_is_right());
  driver->free_bytes += of_others;
  expect_all_goes();
}

}  // namespace
}  // namespace cuwarden::pool
