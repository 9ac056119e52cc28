// Meshing: pages that come to share memory, on a driver that keeps the memory's content.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <vector>

#include "runtime_hooks/pool/meshing/page_pairing.hpp"
#include "tests/repetitions.hpp"
#include "tests/unit/pool/meshing_fixture.hpp"

namespace cuwarden::pool {
namespace {

TEST_P(MeshingEitherWayTest, memory_goes_back_when_a_tenth_of_the_blocks_remain_in_all_pages) {
  fill(200 * MiB, 9);
  keep_one_of(10);
  pool.give_back(real, no_device, UINT64_MAX);
  const std::uint64_t before = taken();
  ASSERT_GT(before, 150 * MiB) << "nearly all pages hold something";
  const std::uint64_t gained = mesh(UINT64_MAX / 2);
  EXPECT_EQ(gained, 0u) << "so much there is not to be had";
  EXPECT_EQ(taken(), before);
  const std::uint64_t half = mesh(before / 2);
  EXPECT_GE(half, before / 2);
  EXPECT_LT(half, before / 2 + 16 * MiB) << "no more than is needed is moved";
  EXPECT_EQ(taken(), before - half);
  EXPECT_EQ(counts().held_bytes, taken());
  EXPECT_EQ(counts().meshed_bytes, half);
  EXPECT_EQ(counts().pause_ns, 10u);
  EXPECT_GT(counts().meshed_pages, 2 * (before - half) / page / 4);
  EXPECT_TRUE(all_is_right());
  EXPECT_EQ(driver->reservations.size(), 1u);
  expect_all_goes();
}

TEST_P(MeshingEitherWayTest, later_blocks_in_meshed_pages_overlap_no_others) {
  fill(200 * MiB, 9);
  for (int round = 0; round < 5; ++round) {
    keep_one_of(6);
    pool.give_back(real, no_device, UINT64_MAX);
    const std::uint64_t before = taken();
    ASSERT_GT(mesh(), 0u) << round;
    for (int i = 0; i < 10 && mesh() != 0; ++i) ASSERT_TRUE(all_is_right());
    EXPECT_LT(taken(), before);
    ASSERT_TRUE(all_is_right()) << round;
    fill(100 * MiB, 9);
    ASSERT_TRUE(all_is_right()) << round;
    EXPECT_LE(counts().live_bytes, counts().held_bytes);
  }
  expect_all_goes();
}

TEST_P(MeshingEitherWayTest, meshing_goes_on_in_the_next_pause_and_ends_without_one) {
  fill(350 * MiB, 5);
  keep_one_of(10);
  pool.give_back(real, no_device, UINT64_MAX);
  const std::uint64_t before = taken();
  EXPECT_EQ(mesh(1, INT32_MAX, 0), 0u);
  EXPECT_EQ(taken(), before);
  const std::uint64_t first = mesh(200 * MiB, 1, 1);
  EXPECT_GT(first, 0u);
  EXPECT_LT(first, 128 * MiB) << "a batch of moves";
  EXPECT_EQ(counts().held_bytes, taken());
  EXPECT_TRUE(all_is_right());
  EXPECT_GE(mesh(140 * MiB, 1), 140 * MiB);
  EXPECT_GE(pauses, 2);
  EXPECT_EQ(counts().pauses, static_cast<unsigned>(pauses + 1));
  EXPECT_EQ(counts().pause_ns, 10 * counts().pauses);
  EXPECT_TRUE(all_is_right());
  expect_all_goes();
}

// Each part of the work that is timed takes one step of the clock.
TEST_F(MeshingTest, the_time_outside_of_pauses_is_counted_by_what_it_was_for) {
  fill(350 * MiB, 5);
  keep_one_of(10);
  pool.give_back(real, no_device, UINT64_MAX);
  EXPECT_EQ(mesh(200 * MiB, INT32_MAX, 0), 0u);
  const ArenaCounts planned = counts();
  EXPECT_GE(planned.plan_ns, 1u);
  EXPECT_GE(planned.prepare_ns, 1u) << "before the pause that was refused";
  EXPECT_GE(planned.release_ns, 1u) << "the memory that was prepared";
  EXPECT_EQ(planned.pauses, 0u);
  ASSERT_GE(mesh(200 * MiB, 1), 200 * MiB);
  ASSERT_GE(pauses, 2);
  const ArenaCounts moved = counts();
  EXPECT_EQ(moved.pauses, static_cast<unsigned>(pauses));
  EXPECT_GT(moved.plan_ns, planned.plan_ns);
  EXPECT_GE(moved.prepare_ns, planned.prepare_ns + moved.pauses);
  EXPECT_GE(moved.release_ns, planned.release_ns + moved.pauses);
  EXPECT_LT(moved.plan_ns + moved.prepare_ns + moved.release_ns, 30 * moved.pauses);
  expect_all_goes();
}

TEST_F(MeshingTest, more_than_is_needed_is_saved_in_the_last_pause_alone) {
  fill(350 * MiB, 9);
  keep_one_of(10);
  pool.give_back(real, no_device, UINT64_MAX);
  EXPECT_GE(mesh(10 * MiB, INT32_MAX, INT32_MAX, 100 * MiB), 100 * MiB);
  EXPECT_EQ(pauses, 1);
  const std::uint64_t rest = mesh(10 * MiB, 1, INT32_MAX, 200 * MiB);
  EXPECT_GE(rest, 10 * MiB);
  EXPECT_LT(rest, 200 * MiB);
  EXPECT_EQ(pauses, 1) << "no further pause for more";
  EXPECT_TRUE(all_is_right());
  expect_all_goes();
}

// Each run of four pages keeps a block in one of them.
TEST_F(MeshingTest, pages_without_a_block_are_counted_and_go_back_although_their_run_is_in_use) {
  for (std::uint64_t i = 0; i < 300; ++i) ASSERT_NE(allocate(MiB), 0u);
  const std::uint64_t live_pages = keep_one_of_eight_in_order();
  pool.give_back(real, no_device, UINT64_MAX);
  const ArenaCounts before = counts();
  EXPECT_GT(before.partly_idle_bytes, 100 * MiB);
  EXPECT_EQ(before.held_bytes, live_pages * page + before.partly_idle_bytes);
  EXPECT_GE(mesh(before.partly_idle_bytes), before.partly_idle_bytes);
  EXPECT_EQ(counts().partly_idle_bytes, 0u);
  EXPECT_TRUE(all_is_right());
  expect_all_goes();
  EXPECT_EQ(counts().partly_idle_bytes, 0u);
}

TEST_F(MeshingTest, without_meshing_each_page_without_a_block_can_be_given_back) {
  pool.meshes_no_more();
  for (std::uint64_t i = 0; i < 300; ++i) ASSERT_NE(allocate(MiB), 0u);
  const std::uint64_t live_pages = keep_one_of_eight_in_order();
  pool.give_back(real, no_device, UINT64_MAX);
  EXPECT_EQ(counts().partly_idle_bytes, 0u);
  EXPECT_EQ(taken(), live_pages * page);

  // A block of several pages leaves behind only the page that a later block uses.
  while (!blocks.empty()) free_one();
  const std::uint64_t large = allocate(7 * MiB);
  free(large);
  ASSERT_NE(allocate(4096), 0u);
  pool.give_back(real, no_device, UINT64_MAX);
  EXPECT_EQ(taken(), page);
}

TEST_P(MeshingEitherWayTest, a_little_free_memory_is_enough_for_meshing) {
  fill(200 * MiB, 9);
  keep_one_of(10);
  pool.give_back(real, no_device, UINT64_MAX);
  const std::uint64_t free = driver->free_bytes;
  driver->free_bytes = 8 * MiB;
  driver->least_free_bytes = UINT64_MAX;
  EXPECT_GE(mesh(100 * MiB), 100 * MiB);
  EXPECT_TRUE(all_is_right());
  driver->free_bytes += free - 8 * MiB;
  expect_all_goes();
}

TEST_P(MeshingEitherWayTest, without_any_free_memory_meshing_begins_in_existing_pages) {
  for (const std::uint64_t there : {std::uint64_t{0}, page}) {
    fill(200 * MiB, 9);
    keep_one_of(10);
    pool.give_back(real, no_device, UINT64_MAX);
    const std::uint64_t free = driver->free_bytes, before = taken();
    driver->free_bytes = there;
    const std::uint64_t gained = mesh(before / 2);
    EXPECT_GE(gained, before / 2);
    EXPECT_EQ(driver->free_bytes, there + gained);
    EXPECT_EQ(counts().held_bytes, before - gained);
    EXPECT_TRUE(all_is_right());
    driver->free_bytes += free - there;
    // Blocks that are freed and allocated anew in shared pages overlap no other block.
    keep_one_of(2);
    fill(50 * MiB, 9);
    EXPECT_TRUE(all_is_right());
    while (!blocks.empty()) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
    EXPECT_EQ(taken(), 0u);
  }
  expect_all_goes();
}

TEST_F(MeshingTest, no_page_is_moved_into_a_full_one) {
  driver->free_bytes = 2 * room;
  driver->largest_handle = page;  // Each page is mapped by itself.
  std::vector<std::uint64_t> pieces;
  for (int i = 0; i < 4 * 390; ++i) pieces.push_back(allocate(page / 4));
  ASSERT_TRUE(std::ranges::count(pieces, 0u) == 0);
  // Pages 0 to 299 stay full; each of the others keeps one quarter, in turn another one.
  for (std::size_t i = 4 * 300; i < pieces.size(); ++i)
    if (i / 4 % 4 != i % 4) free(pieces[i]);
  pool.give_back(real, no_device, UINT64_MAX);
  const std::uint64_t free = driver->free_bytes;
  driver->free_bytes = 0;
  EXPECT_GE(mesh(40 * MiB), 40 * MiB);
  EXPECT_TRUE(all_is_right());
  driver->free_bytes += free - room;
  driver->largest_handle = UINT64_MAX;
  expect_all_goes();
}

TEST_F(MeshingTest, without_room_whole_runs_are_moved_into_each_other) {
  for (int i = 0; i < 3200; ++i) ASSERT_NE(allocate(65536), 0u);
  const std::uint64_t start = blocks.begin()->first;
  keep_one_of(10);
  // Frees the first blocks, from which the arena grew.
  while (!blocks.empty() && blocks.begin()->first < start + 80 * MiB) free_one();
  pool.give_back(real, no_device, UINT64_MAX);
  const std::uint64_t before = taken();
  const std::uint64_t others = std::exchange(driver->free_bytes, 0);
  const std::uint64_t gained = mesh(16 * MiB);
  EXPECT_GE(gained, 16 * MiB);
  EXPECT_EQ(pauses, 1);
  EXPECT_EQ(driver->free_bytes, gained);
  driver->free_bytes += others;
  EXPECT_EQ(taken(), before - gained);
  EXPECT_TRUE(all_is_right());
  expect_all_goes();
}

TEST_F(MeshingTest, new_blocks_lie_in_the_host_of_runs_that_were_moved_as_a_whole) {
  for (int i = 0; i < 3200; ++i) ASSERT_NE(allocate(65536), 0u);
  keep_one_of(10);
  pool.give_back(real, no_device, UINT64_MAX);
  ASSERT_GE(mesh(64 * MiB), 64 * MiB);
  // Blocks come into all holes, and blocks of guests are freed and replaced meanwhile.
  const std::uint64_t held = counts().held_bytes;
  for (int round = 0; round < 20; ++round) {
    while (counts().held_bytes == held)
      ASSERT_NE(allocate(std::uint64_t{4096} << random() % 6), 0u);
    ASSERT_TRUE(all_is_right()) << "round " << round;
    keep_one_of(4);
    pool.give_back(real, no_device, UINT64_MAX);
    mesh(8 * MiB);
    ASSERT_TRUE(all_is_right()) << "round " << round;
    if (counts().held_bytes >= held) break;
  }
  expect_all_goes();
}

TEST_F(MeshingTest, runs_that_were_moved_as_a_whole_part_again_if_more_must_be_saved) {
  std::uint64_t left_alone = 0;
  for (const bool alone : {true, false}) {
    driver->largest_handle = alone ? page : UINT64_MAX;
    random.seed(5);
    for (int i = 0; i < 6000; ++i) ASSERT_NE(allocate(65536), 0u);
    keep_one_of(10);
    pool.give_back(real, no_device, UINT64_MAX);
    while (mesh(8 * MiB) != 0) ASSERT_TRUE(all_is_right());
    if (alone)
      left_alone = counts().held_bytes;
    else
      EXPECT_LE(counts().held_bytes, left_alone + 4 * page);
    while (!blocks.empty()) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
    pool.give_back_start_memory(real, DeviceOrdinal{0});
  }
  expect_all_goes();
}

TEST_F(MeshingTest, without_room_and_without_runs_that_fit_nothing_is_moved) {
  for (int i = 0; i < 3200; ++i) ASSERT_NE(allocate(65536), 0u);
  const std::uint64_t start = blocks.begin()->first;
  keep_runs_apart(10);
  // Frees the first blocks, from which the arena grew.
  while (!blocks.empty() && blocks.begin()->first < start + 80 * MiB) free_one();
  pool.give_back(real, no_device, UINT64_MAX);
  const std::uint64_t before = taken();
  const std::uint64_t others = std::exchange(driver->free_bytes, 0);
  EXPECT_EQ(mesh(), 0u);
  EXPECT_EQ(pauses, 0) << "no thread is paused if no page can be freed";
  driver->free_bytes += others;
  EXPECT_EQ(taken(), before);
  EXPECT_TRUE(all_is_right());
  EXPECT_GT(mesh(), 0u) << "with room, single pages move";
  expect_all_goes();
}

TEST_P(MeshingEitherWayTest, peers_may_use_memory_that_was_moved) {
  fill(50 * MiB, 9);
  keep_one_of(10);
  peers.set(DeviceOrdinal{0}, DeviceOrdinal{3}, true);
  pool.change_access(real, DeviceOrdinal{0}, DeviceOrdinal{3}, true);
  ASSERT_GT(mesh(), 0u);
  const auto all_have = [&](std::uint64_t devices) {
    return std::ranges::all_of(driver->mappings,
                               [&](const auto& at) { return at.second.devices == devices; });
  };
  EXPECT_TRUE(all_have(0b1001));
  EXPECT_EQ(pool.change_access(real, DeviceOrdinal{0}, DeviceOrdinal{3}, false), CUDA_SUCCESS);
  EXPECT_TRUE(all_have(0b0001));
  expect_all_goes();
}

TEST_P(MeshingEitherWayTest, a_few_addresses_are_enough_for_the_old_memory_of_all_runs) {
  fill(350 * MiB, 9);
  keep_one_of(10);
  pool.give_back(real, no_device, UINT64_MAX);
  driver->largest_reservation = 160 * MiB;
  EXPECT_GE(mesh(200 * MiB), 200 * MiB);
  EXPECT_EQ(pauses, 1);
  EXPECT_TRUE(all_is_right());
  EXPECT_EQ(driver->reservations.size(), 1u);
  // The driver refuses any, and there are few pages that were mapped alone.
  driver->largest_reservation = 32 * MiB;
  mesh();
  EXPECT_TRUE(all_is_right());
  driver->largest_reservation = UINT64_MAX;
  expect_all_goes();
}

// A process has twice as many addresses for the pool as the device has memory.
TEST_F(MeshingTest, addresses_of_pages_that_share_memory_are_used_again) {
  const std::uint64_t rounds = test::repetitions(150);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t before = last_number;
    fill(60 * MiB, 4);
    keep_one_of(20);
    // Blocks of earlier rounds go now.
    for (auto at = blocks.begin(); at != blocks.end();) {
      const auto [address, block] = *at++;
      if (block.number <= before) free(address);
    }
    pool.give_back(real, no_device, UINT64_MAX);
    mesh(1, INT32_MAX, INT32_MAX, UINT64_MAX / 2);
    ASSERT_FALSE(HasFatalFailure()) << "no addresses in round " << round;
    ASSERT_LT(driver->mappings.size(), 150u) << "addresses without blocks stay mapped";
  }
  EXPECT_GT(counts().meshed_pages, 6 * rounds);
  EXPECT_TRUE(all_is_right());
  expect_all_goes();
}

INSTANTIATE_TEST_SUITE_P(copies, MeshingEitherWayTest, testing::Bool(), &way_of_copies);

TEST(MeshPlan, pages_that_share_memory_have_no_step_in_common) {
  std::mt19937_64 random(3);
  std::vector<std::vector<bool>> steps(500, std::vector<bool>(PageSteps::count));
  std::vector<PageSteps> pages(500);
  for (std::size_t i = 0; i < pages.size(); ++i)
    for (int blocks = 0; blocks < 6; ++blocks) {
      const auto first = static_cast<std::uint32_t>(random() % PageSteps::count);
      const auto end = std::min<std::uint32_t>(
          first + 1 + static_cast<std::uint32_t>(random() % 200), PageSteps::count);
      pages[i].take(first, end);
      std::fill(steps[i].begin() + first, steps[i].begin() + end, true);
    }
  for (std::size_t i = 0; i < pages.size(); ++i)
    ASSERT_EQ(pages[i].taken(), std::ranges::count(steps[i], true));
  MeshPlan plan;
  const std::vector<std::uint32_t> target_of = plan.assign_all(pages);
  ASSERT_EQ(target_of.size(), pages.size());
  EXPECT_LT(plan.targets(), 300u);
  std::vector<std::vector<bool>> targets(plan.targets(), std::vector<bool>(PageSteps::count));
  for (std::size_t i = 0; i < pages.size(); ++i)
    for (std::size_t step = 0; step < PageSteps::count; ++step) {
      if (!steps[i][step]) continue;
      ASSERT_FALSE(targets[target_of[i]][step]);
      targets[target_of[i]][step] = true;
    }
}

TEST(MeshPlan, a_page_finds_the_one_target_with_room_among_several_hundred) {
  // Returns a page that takes every second group of eight steps, from the group `first` on.
  const auto every_second_group = [](std::uint32_t first, std::uint32_t groups) {
    PageSteps steps;
    for (std::uint32_t group = first; groups-- > 0; group += 2)
      steps.take(group * 8, group * 8 + 8);
    return steps;
  };
  constexpr std::uint32_t half = PageSteps::count / 16;
  std::vector<PageSteps> pages{every_second_group(0, half)};
  for (int i = 0; i < 400; ++i) {
    pages.push_back(every_second_group(0, half - 2));
    pages.back().take(8, 16);
  }
  pages.push_back(every_second_group(1, half - 2));
  MeshPlan plan;
  const std::vector<std::uint32_t> target_of = plan.assign_all(pages);
  EXPECT_EQ(target_of.back(), target_of.front());
  EXPECT_EQ(plan.targets(), 401u);
}

}  // namespace
}  // namespace cuwarden::pool
