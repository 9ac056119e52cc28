// Meshing while calls of the driver fail: blocks stay intact, and memory is given back.
#include <algorithm>
#include <utility>
#include <vector>

#include "tests/unit/pool/meshing_fixture.hpp"

namespace cuwarden::pool {
namespace {

class MeshingFailuresTest : public MeshingEitherWayTest {};

INSTANTIATE_TEST_SUITE_P(copies, MeshingFailuresTest, testing::Bool(), &way_of_copies);

// Whichever call the driver refuses, each block's content is at its address.
TEST_P(MeshingFailuresTest, a_failure_of_any_call_leaves_all_blocks_intact) {
  int failed = 0;
  for (int round = 0; round < 130; ++round) {
    const int calls = round < 120 ? round / 2 : static_cast<int>(random() % 300);
    if (blocks.size() < 1000) fill(60 * MiB, 8);
    keep_one_of(5);
    pool.give_back(real, no_device, UINT64_MAX);
    // Rounds alternate between new memory and single pages that exist already.
    const std::uint64_t withheld = round % 2 == 0 ? 0 : driver->free_bytes;
    driver->free_bytes -= withheld;
    driver->fail_after = calls;
    mesh(20 * MiB);
    driver->free_bytes += withheld;
    ASSERT_TRUE(driver->under_way.empty()) << "a late copy would overwrite other blocks";
    failed += driver->fail_after < 0;
    driver->fail_after = -1;
    ASSERT_TRUE(all_is_right()) << calls;
    ASSERT_EQ(counts().held_bytes, taken()) << calls;
    ASSERT_EQ(counts().lost_bytes, 0u);
    ASSERT_EQ(driver->reservations.size(), 1u);
  }
  EXPECT_GT(failed, 60);
  expect_all_goes();
}

// Runs of four pages move as a whole, and part again once that saves too little.
TEST_P(MeshingFailuresTest, a_failure_of_any_call_while_whole_runs_move_leaves_all_blocks_intact) {
  int failed = 0;
  for (int round = 0; round < 60; ++round) {
    const int calls = round < 40 ? round : static_cast<int>(random() % 300);
    for (int block = 0; block < 5600; ++block) ASSERT_NE(allocate(65536), 0u);
    keep_one_of(10);
    pool.give_back(real, no_device, UINT64_MAX);
    ASSERT_GE(mesh(8 * MiB), 8 * MiB);
    for (int request = 0; request < 6; ++request) {
      driver->fail_after = request % 2 == 0 ? calls : -1;
      mesh(16 * MiB);
      ASSERT_TRUE(driver->under_way.empty()) << "a late copy would overwrite other blocks";
      failed += request % 2 == 0 && driver->fail_after < 0;
      driver->fail_after = -1;
      for (int block = 0; block < 3; ++block) free_one();
      ASSERT_NE(allocate(4096), 0u);
      ASSERT_TRUE(all_is_right()) << calls << ' ' << request;
      ASSERT_EQ(counts().held_bytes, taken()) << calls << ' ' << request;
      ASSERT_EQ(counts().lost_bytes, 0u);
      ASSERT_EQ(driver->reservations.size(), 1u);
    }
    while (!blocks.empty()) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
    pool.give_back_start_memory(real, DeviceOrdinal{0});
    ASSERT_EQ(taken(), 0u);
  }
  EXPECT_GT(failed, 20);
  expect_all_goes();
}

TEST_P(MeshingFailuresTest, a_wrong_copy_in_the_last_of_four_pages_is_noticed) {
  // Pairs of runs fit together. Each block lies in the last page of its run.
  for (int block = 0; block < 1400; ++block) ASSERT_NE(allocate(page / 8), 0u);
  std::vector<std::uint64_t> last_pages;
  for (const auto& [address, mapping] : driver->mappings)
    if (driver->handles.at(mapping.handle).bytes == 4 * page)
      last_pages.push_back(address + 3 * page);
  ASSERT_GT(last_pages.size(), 10u);
  for (auto at = blocks.begin(); at != blocks.end();) {
    const std::uint64_t address = (at++)->first;
    const auto found = std::ranges::find(last_pages, address - address % page);
    const auto slot = static_cast<std::uint64_t>((found - last_pages.begin()) % 8);
    if (found == last_pages.end() || address % page / (page / 8) != slot) free(address);
  }
  pool.give_back(real, no_device, UINT64_MAX);
  verifies = true;
  driver->copies_are_wrong = true;
  EXPECT_EQ(mesh(8 * MiB), 0u);
  EXPECT_EQ(counts().differing_bytes, page);
  EXPECT_TRUE(all_is_right());
}

TEST_P(MeshingFailuresTest, memory_that_the_driver_does_not_unmap_harms_no_block) {
  int failed = 0;
  for (int round = 0; round < 24; ++round) {
    fill(100 * MiB, 8);
    keep_one_of(5);
    pool.give_back(real, no_device, UINT64_MAX);
    // Rounds alternate between new memory and single pages that exist already.
    const std::uint64_t withheld = round % 2 == 0 ? 0 : driver->free_bytes;
    driver->free_bytes -= withheld;
    driver->unmaps_refused_after = round / 2;
    mesh(20 * MiB);
    failed += std::exchange(driver->unmaps_refused_after, -1) < 0;
    ASSERT_TRUE(all_is_right()) << round;
    ASSERT_EQ(counts().lost_bytes, 0u) << round;
    while (!blocks.empty()) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
    // Memory that is still mapped at a scratch address is not had again.
    driver->free_bytes = room;
  }
  EXPECT_GT(failed, 12);
}

TEST_P(MeshingFailuresTest, memory_is_exchanged_back_if_copies_cannot_be_waited_for) {
  for (const bool alone : {false, true}) {
    driver->largest_handle = alone ? page : UINT64_MAX;
    for (std::uint64_t sum = 0; sum < 300 * MiB; sum += 65536) ASSERT_NE(allocate(65536), 0u);
    keep_one_of(10);
    pool.give_back(real, no_device, UINT64_MAX);
    for (int waits = 0; waits < 2; ++waits) {
      const std::uint64_t held = taken(), meshed = counts().meshed_pages;
      const std::size_t mapped = driver->mappings.size();
      driver->waits_refused_after = waits;
      const std::uint64_t gained = mesh(150 * MiB);
      ASSERT_EQ(driver->waits_refused_after, -1);
      EXPECT_EQ(gained != 0, waits != 0) << "the first batch of moves alone is complete";
      EXPECT_EQ(counts().meshed_pages != meshed, waits != 0);
      EXPECT_EQ(taken(), held - gained);
      EXPECT_EQ(counts().held_bytes, taken());
      EXPECT_EQ(counts().lost_bytes, 0u);
      EXPECT_TRUE(driver->mappings.size() == mapped || waits != 0);
      ASSERT_TRUE(all_is_right()) << alone << waits;
    }
    while (!blocks.empty()) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
  }
  driver->largest_handle = UINT64_MAX;
  expect_all_goes();
}

TEST_P(MeshingFailuresTest, wrong_copies_are_noticed_for_runs_of_one_page_and_of_several) {
  for (const bool alone : {false, true}) {
    driver = std::make_unique<Driver>();
    driver->free_bytes = room;
    driver->largest_handle = alone ? page : UINT64_MAX;
    blocks.clear();
    DevicePool own(peers);
    std::vector<std::uint64_t> made;
    for (int i = 0; i < 3000; ++i) {
      made.push_back(own.allocate(real, DeviceOrdinal{0}, ContextId{7}, 65536, 1));
      ASSERT_NE(made.back(), 0u);
      driver->each_word(made.back(), 65536,
                        [&](std::uint64_t& word, std::uint64_t) { word = made.back() % 251; });
    }
    for (const std::uint64_t address : made)
      if (random() % 10 != 0) {
        const auto block = own.owner(address)->retire(address);
        own.owner(address)->give(*block, 1);
      } else {
        blocks[address] = {65536, address % 251};
      }
    FakePause pause;
    const MeshGoal goal{1, 1, 1, true};
    EXPECT_NE(own.mesh(real, DeviceOrdinal{0}, pause, goal), 0u);
    driver->copies_are_wrong = true;
    EXPECT_EQ(own.mesh(real, DeviceOrdinal{0}, pause, goal), 0u);
    EXPECT_EQ(own.counts(DeviceOrdinal{0}).differing_bytes, page);
    EXPECT_EQ(own.counts(DeviceOrdinal{0}).lost_bytes, 0u);
    EXPECT_TRUE(all_is_right());
    blocks.clear();
  }
}

TEST_P(MeshingFailuresTest, no_new_block_lies_at_addresses_that_have_lost_their_memory) {
  fill(100 * MiB, 8);
  keep_one_of(10);
  pool.give_back(real, no_device, UINT64_MAX);
  for (int refused = 1; counts().lost_bytes == 0; ++refused) {
    ASSERT_LT(refused, 1000) << "no memory was lost";
    driver->maps_refused_after = refused;
    mesh();
    driver->maps_refused_after = -1;
  }
  const std::uint64_t lost = counts().lost_bytes;
  for (int i = 0; i < 20'000; ++i) ASSERT_NE(allocate(4096), 0u);
  EXPECT_EQ(driver->errors, 0) << "a block has no memory";
  EXPECT_EQ(counts().lost_bytes, lost);
  // Freed blocks of the lost pages leave no hole.
  while (!blocks.empty()) free(blocks.begin()->first);
  for (int i = 0; i < 30'000; ++i) ASSERT_NE(allocate(4096), 0u);
  EXPECT_EQ(driver->errors, 0) << "a block has no memory";
}

}  // namespace
}  // namespace cuwarden::pool
