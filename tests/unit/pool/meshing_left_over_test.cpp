// Plans of meshing that serve several requests: the moves that one request leaves over are made for
// the next ones, as far as they are possible still.
#include "tests/unit/pool/meshing_fixture.hpp"

namespace cuwarden::pool {
namespace {

class LeftOverTest : public MeshingTest {
 protected:
  // Fills pages with blocks of 4 to 128 KiB, of which one of ten is left. `apart`: true if no two
  // runs are to fit together as a whole.
  void use_pages_sparsely(bool apart = false) {
    fill(200 * MiB, 6);
    apart ? keep_runs_apart(10) : keep_one_of(10);
    pool.give_back(real, no_device, UINT64_MAX);
  }
  // Returns the number of pages that plans have looked at since the last call.
  std::uint64_t newly_planned() {
    return counts().planned_pages - std::exchange(planned, counts().planned_pages);
  }
  // Number of pages of memory that the pool has.
  std::uint64_t pages() { return counts().held_bytes / page; }

  std::uint64_t planned = 0;  // pages that plans had looked at when newly_planned() was called last
};

TEST_F(LeftOverTest, one_plan_serves_several_requests) {
  use_pages_sparsely();
  EXPECT_GE(mesh(10 * MiB), 10 * MiB);
  EXPECT_GT(newly_planned(), 80u);
  for (int request = 0; request < 4; ++request) {
    EXPECT_GE(mesh(10 * MiB), 10 * MiB);
    EXPECT_EQ(newly_planned(), 0u) << "request " << request;
    ASSERT_TRUE(all_is_right());
  }
  expect_all_goes();
}

TEST_F(LeftOverTest, one_plan_of_whole_runs_serves_several_requests) {
  for (int i = 0; i < 6000; ++i) ASSERT_NE(allocate(65536), 0u);
  keep_one_of(10);
  EXPECT_GE(mesh(8 * MiB), 8 * MiB);
  EXPECT_GT(newly_planned(), 60u);
  EXPECT_GE(mesh(8 * MiB), 8 * MiB);
  EXPECT_EQ(newly_planned(), 0u);
  EXPECT_TRUE(all_is_right());
  // The plan of whole runs saves too little in the end. A plan of all pages follows.
  std::uint64_t gained = 8 * MiB;
  while (gained != 0) gained = mesh(8 * MiB);
  EXPECT_GT(newly_planned(), 60u);
  EXPECT_TRUE(all_is_right());
  expect_all_goes();
}

TEST_F(LeftOverTest, requests_that_use_up_all_memory_leave_the_next_plan_something_to_begin_with) {
  for (int block = 0; block < 400; ++block) ASSERT_NE(allocate(MiB), 0u);
  ASSERT_EQ(driver->free_bytes, 0u);
  keep_one_of(10);
  pool.give_back(real, no_device, UINT64_MAX);
  const std::uint64_t least_bytes = blocks.size() * MiB;
  std::uint64_t used = 0;  // bytes that others have taken
  const auto use_all = [&] { used += std::exchange(driver->free_bytes, 0); };
  use_all();
  // Each plan saves at least what a request needs, and a little for the next ones.
  while (mesh(16 * MiB, INT32_MAX, INT32_MAX, 24 * MiB, 8 * MiB) >= 16 * MiB) use_all();
  use_all();
  EXPECT_GE(used, room - least_bytes - 24 * MiB);
  EXPECT_TRUE(all_is_right());
  driver->free_bytes += used;
  expect_all_goes();
}

TEST_F(LeftOverTest, memory_kept_for_the_next_plan_is_idle_and_goes_back_on_request) {
  use_pages_sparsely();
  ASSERT_GE(mesh(10 * MiB, INT32_MAX, INT32_MAX, 40 * MiB, 8 * MiB), 10 * MiB);
  const ArenaCounts before = counts();
  ASSERT_EQ(before.held_bytes, taken());
  EXPECT_EQ(before.idle_bytes, 8 * MiB);
  EXPECT_EQ(pool.give_back_start_memory(real, DeviceOrdinal{0}), 8 * MiB);
  EXPECT_EQ(pool.give_back_start_memory(real, DeviceOrdinal{0}), 0u);
  EXPECT_EQ(counts().idle_bytes, 0u);
  EXPECT_EQ(counts().held_bytes, taken());
  EXPECT_EQ(counts().meshed_bytes, before.meshed_bytes + 8 * MiB);
  expect_all_goes();
}

TEST_F(LeftOverTest, memory_is_kept_only_beyond_what_the_request_needs) {
  use_pages_sparsely();
  const std::uint64_t before = driver->free_bytes;
  FakePause pause;
  const std::uint64_t gained =
      pool.mesh(real, DeviceOrdinal{0}, pause, {1, 10 * MiB, 12 * MiB, false, false, 8 * MiB});
  EXPECT_GE(gained, 10 * MiB);
  EXPECT_EQ(driver->free_bytes, before + gained);
  expect_all_goes();
}

TEST_F(LeftOverTest, a_request_gets_the_memory_kept_for_a_plan_that_saves_nothing_more) {
  use_pages_sparsely();
  ASSERT_GE(mesh(10 * MiB, INT32_MAX, INT32_MAX, 40 * MiB, 8 * MiB), 10 * MiB);
  // No pause can be had.
  EXPECT_EQ(mesh(100 * MiB, INT32_MAX, 0), 8 * MiB);
  EXPECT_EQ(counts().idle_bytes, 0u);
  expect_all_goes();
}

TEST_F(LeftOverTest, a_plan_whose_pause_was_refused_serves_the_next_request) {
  use_pages_sparsely();
  EXPECT_EQ(mesh(10 * MiB, INT32_MAX, 0), 0u);
  EXPECT_GT(newly_planned(), 80u);
  EXPECT_GE(mesh(10 * MiB), 10 * MiB);
  EXPECT_EQ(newly_planned(), 0u);
  EXPECT_TRUE(all_is_right());
  expect_all_goes();
}

TEST_F(LeftOverTest, a_page_that_has_got_a_block_is_not_moved_by_an_older_plan) {
  for (int round = 0; round < 10; ++round) {
    use_pages_sparsely();
    ASSERT_GE(mesh(4 * MiB), 4 * MiB);
    newly_planned();
    // Blocks come into holes of some pages. The moves of the other pages save what is needed.
    const std::uint64_t held = counts().held_bytes;
    for (int block = 0; block < 40; ++block)
      ASSERT_NE(allocate(std::uint64_t{4096} << random() % 5), 0u);
    ASSERT_EQ(counts().held_bytes, held);
    for (int request = 0; request < 10; ++request) {
      mesh(2 * MiB);
      ASSERT_TRUE(all_is_right()) << "round " << round << ", request " << request;
    }
  }
  expect_all_goes();
}

TEST_F(LeftOverTest, a_page_that_another_run_has_got_is_not_moved_by_an_older_plan) {
  for (int round = 0; round < 10; ++round) {
    use_pages_sparsely();
    ASSERT_GE(mesh(4 * MiB), 4 * MiB);
    // Runs go, and others take their rows and addresses.
    const std::uint64_t middle = std::next(blocks.begin(), blocks.size() / 2)->first;
    for (int block = 0; block < 8; ++block) free(blocks.lower_bound(middle)->first);
    pool.give_back(real, no_device, UINT64_MAX);
    fill(8 * MiB, 9);
    for (int request = 0; request < 5; ++request) {
      mesh(2 * MiB);
      ASSERT_TRUE(all_is_right()) << "round " << round << ", request " << request;
      ASSERT_EQ(counts().held_bytes, taken());
    }
    keep_one_of(3);
  }
  expect_all_goes();
}

TEST_F(LeftOverTest, frees_leave_a_plan_in_use_until_many_blocks_are_freed) {
  use_pages_sparsely(true);
  ASSERT_GE(mesh(4 * MiB), 4 * MiB);
  newly_planned();
  for (int block = 0; block < 3; ++block) free_one();
  EXPECT_GE(mesh(4 * MiB), 4 * MiB);
  EXPECT_EQ(newly_planned(), 0u);
  keep_runs_apart(2);
  EXPECT_GE(mesh(4 * MiB), 4 * MiB);
  EXPECT_GT(newly_planned(), pages() / 2);
  EXPECT_TRUE(all_is_right());
  expect_all_goes();
}

TEST_F(LeftOverTest, a_request_is_refused_only_after_a_plan_of_all_pages) {
  use_pages_sparsely();
  ASSERT_GE(mesh(4 * MiB), 4 * MiB);
  newly_planned();
  // Every run gets a block, so that no left-over move is possible, and loses it again.
  const auto kept = blocks;
  while (counts().idle_bytes == 0 && last_number < 100'000) ASSERT_NE(allocate(4096), 0u);
  std::vector<std::uint64_t> added;
  for (const auto& block : blocks)
    if (!kept.contains(block.first)) added.push_back(block.first);
  for (const std::uint64_t address : added) free(address);
  pool.give_back(real, no_device, UINT64_MAX);
  EXPECT_GE(mesh(4 * MiB), 4 * MiB) << "a new plan saves what left-over moves cannot";
  EXPECT_GT(newly_planned(), pages() / 2);
  while (mesh(4 * MiB) != 0) newly_planned();
  EXPECT_GE(newly_planned(), pages()) << "before the refusal";
  EXPECT_EQ(mesh(4 * MiB), 0u);
  EXPECT_GE(newly_planned(), pages()) << "before each refusal";
  EXPECT_TRUE(all_is_right());
  expect_all_goes();
}

TEST_F(LeftOverTest, a_page_that_has_lost_its_last_block_is_not_moved) {
  for (int round = 0; round < 10; ++round) {
    use_pages_sparsely();
    ASSERT_GE(mesh(4 * MiB), 4 * MiB);
    for (int freed = 0; freed < 3; ++freed) {
      // The page keeps its memory, since neighbours that were mapped with it hold blocks.
      const auto some =
          std::next(blocks.begin(), static_cast<std::ptrdiff_t>(random() % blocks.size()));
      const std::uint64_t start = some->first / page * page;
      for (auto at = blocks.lower_bound(start); at != blocks.end() && at->first < start + page;)
        free((at++)->first);
      mesh(4 * MiB);
      ASSERT_TRUE(all_is_right()) << "round " << round;
    }
    while (mesh(2 * MiB) != 0) ASSERT_TRUE(all_is_right()) << "round " << round;
    while (!blocks.empty()) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
    ASSERT_EQ(taken(), 0u) << "round " << round;
  }
  expect_all_goes();
}

// Without scratch addresses, pages move into other pages' memory by a plan of its own.
TEST_F(LeftOverTest, a_page_that_others_have_joined_meanwhile_is_no_target_of_an_older_plan) {
  for (int round = 0; round < 10; ++round) {
    fill(300 * MiB, 6);
    keep_one_of(8);
    pool.give_back(real, no_device, UINT64_MAX);
    driver->largest_reservation = 32 * MiB;
    ASSERT_GT(mesh(2 * MiB), 0u) << "round " << round;
    driver->largest_reservation = UINT64_MAX;
    for (int request = 0; request < 5; ++request) {
      mesh(20 * MiB);
      ASSERT_TRUE(all_is_right()) << "round " << round << ", request " << request;
    }
    while (!blocks.empty()) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
  }
  expect_all_goes();
}

TEST_F(LeftOverTest, nothing_is_left_over_from_a_context_that_has_ended) {
  use_pages_sparsely();
  ASSERT_GE(mesh(4 * MiB), 4 * MiB);
  expect_all_goes();
  driver->has_module = false;  // The driver unloads a context's modules at its end.
  ASSERT_NE(allocate(4096), 0u);
  EXPECT_EQ(mesh(), 0u);
  expect_all_goes();
}

}  // namespace
}  // namespace cuwarden::pool
