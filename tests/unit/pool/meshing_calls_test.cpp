// The driver's calls by which pages are moved: their number, which is what meshing costs, and their
// failures while blocks are copied.
#include "tests/unit/pool/meshing_fixture.hpp"

namespace cuwarden::pool {
namespace {

class MeshingCallsTest : public MeshingTest {
 protected:
  // Fills memory with blocks of `bytes`, and keeps some: as many in a page as told, on average.
  // `apart`: true if no two runs are to fit together as a whole.
  void leave_some(std::uint64_t filled, std::uint64_t bytes, std::uint64_t in_page = 3,
                  bool apart = false) {
    for (std::uint64_t sum = 0; sum < filled; sum += bytes) ASSERT_NE(allocate(bytes), 0u);
    const auto one_of = static_cast<unsigned>(page / bytes / in_page);
    apart ? keep_runs_apart(one_of) : keep_one_of(one_of);
    pool.give_back(real, no_device, UINT64_MAX);
    ASSERT_NE(mesh(), 0u) << "a first move, with the checks that are made once";
    driver->calls = {};
    before = counts().meshed_pages;
  }
  // Checks that `moves` moves into memory of the pool, or one more, have cost one map, one access
  // and one unmap each, and that no memory was made.
  void expect_one_call_of_each_kind(int moves) {
    const Driver::Calls calls = driver->calls;
    EXPECT_EQ(calls.copy, 0);
    EXPECT_EQ(calls.create, 0);
    EXPECT_EQ(calls.map, calls.unmap);
    EXPECT_EQ(calls.map, calls.set_access);
    EXPECT_GE(calls.map, moves);
    EXPECT_LE(calls.map, moves + 1);
  }
  int pages() { return static_cast<int>(counts().meshed_pages - before); }

  std::uint64_t before = 0;
};

TEST_F(MeshingCallsTest, a_page_that_moves_to_new_memory_costs_a_map_and_parts_of_other_calls) {
  for (const std::uint64_t bytes : {4096u, 65536u}) {
    leave_some(300 * MiB, bytes, 3, true);
    ASSERT_GE(mesh(100 * MiB), 100 * MiB);
    ASSERT_GT(pages(), 60);
    const Driver::Calls calls = driver->calls;
    EXPECT_EQ(calls.copy, 0) << "no call for each copy";
    EXPECT_LE(calls.launch, pages() / 20 + 10);
    EXPECT_LE(calls.wait, pages() / 40 + 10);
    // A run's four pages are mapped a second time by one call.
    EXPECT_LE(calls.map, pages() + pages() / 2 + 10);
    // One for the four second addresses, and one for each row of neighbours: pages that stay where
    // they are, because runs are kept apart, cut such rows.
    EXPECT_LE(calls.set_access, pages() * 3 / 4 + 10);
    EXPECT_LE(calls.unmap, pages() * 3 / 4 + 10);
    EXPECT_LE(calls.create, pages() / 2 + 10);
    EXPECT_TRUE(all_is_right());
    while (!blocks.empty()) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
  }
  expect_all_goes();
}

TEST_F(MeshingCallsTest, four_neighbours_that_move_together_cost_as_many_calls_as_one_page) {
  for (const std::uint64_t bytes : {4096u, 65536u}) {
    leave_some(300 * MiB, bytes);
    ASSERT_GE(mesh(48 * MiB), 48 * MiB);
    ASSERT_GE(pages(), static_cast<int>(48 * MiB / page));
    const Driver::Calls calls = driver->calls;
    const int moves = pages() / 4;
    EXPECT_EQ(calls.copy, 0) << "no call for each copy";
    // Pieces of eight pages are mapped a second time by one call.
    EXPECT_LE(calls.map, moves + moves / 2 + 4);
    EXPECT_LE(calls.set_access, moves + moves / 2 + 4);
    EXPECT_LE(calls.unmap, moves + moves / 2 + 4);
    EXPECT_LE(calls.create, moves / 2 + 4);
    EXPECT_TRUE(all_is_right());
    while (!blocks.empty()) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
  }
  expect_all_goes();
}

// A pause that notes how many calls the driver had before it began.
class NotingPause final : public Pause {
 public:
  bool begin() noexcept override { return before = driver->calls, true; }
  bool is_over() noexcept override { return false; }
  std::uint64_t end() noexcept override { return 10; }

  Driver::Calls before{};  // calls of the driver before the last pause
};

TEST_F(MeshingCallsTest, old_memory_gets_second_addresses_before_the_pause_on_a_full_device) {
  leave_some(300 * MiB, 65536, 3, true);
  const std::uint64_t of_others = driver->free_bytes - 4 * page;
  driver->free_bytes -= of_others;
  NotingPause pause;
  ASSERT_GE(pool.mesh(real, DeviceOrdinal{0}, pause, {0, 48 * MiB, 48 * MiB, false, false, 0}),
            48 * MiB);
  // Each move needs memory for three or four pages, so there is none for a third.
  EXPECT_LE(pause.before.create, 5);
  // A move saves at most three pages of four.
  EXPECT_GE(pause.before.map, static_cast<int>(48 * MiB / page / 3));
  EXPECT_EQ(pause.before.unmap, 0);
  EXPECT_TRUE(all_is_right());
  driver->free_bytes += of_others;
  expect_all_goes();
}

TEST_F(MeshingCallsTest, a_page_that_moves_to_memory_of_the_pool_is_mapped_nowhere_else) {
  driver->largest_handle = page;  // Each page is mapped by itself.
  leave_some(300 * MiB, 65536);
  ASSERT_GE(mesh(100 * MiB), 100 * MiB);
  const int moved = static_cast<int>(100 * MiB / page);
  expect_one_call_of_each_kind(moved);
  EXPECT_LE(driver->calls.launch, moved / 20 + 10);
  EXPECT_TRUE(all_is_right());
  driver->largest_handle = UINT64_MAX;
  expect_all_goes();
}

TEST_F(MeshingCallsTest, the_kernel_is_loaded_when_the_pool_serves_its_first_request) {
  EXPECT_FALSE(driver->is_code_loaded);
  ASSERT_NE(allocate(4096), 0u);
  EXPECT_TRUE(driver->has_module && driver->is_code_loaded);
  ASSERT_NE(allocate(4096), 0u) << "the driver refuses to load the kernel a second time";
  expect_all_goes();
}

TEST_F(MeshingCallsTest, no_kernel_is_loaded_where_memory_is_never_moved) {
  DevicePool unmoved(peers, false);
  const std::uint64_t address = unmoved.allocate(real, DeviceOrdinal{0}, ContextId{9}, 4096, 1);
  EXPECT_NE(address, 0u);
  EXPECT_FALSE(driver->has_module);
}

TEST_F(MeshingCallsTest, a_kernel_that_the_driver_does_not_load_wholly_is_not_used) {
  for (const int calls : {1, 2, 3}) {
    driver->fail_after = calls;
    DevicePool other(peers);
    ASSERT_NE(other.allocate(real, DeviceOrdinal{0}, ContextId{9}, 4096, 1), 0u);
    EXPECT_EQ(driver->fail_after, -1) << "one of the three calls that load it";
    EXPECT_FALSE(driver->has_module);
    other.set_ending(ContextId{9}, true);
    other.context_ended(real, ContextId{9});
  }
}

// The kernel cannot be launched while another context is current.
TEST_F(MeshingCallsTest, blocks_are_copied_by_the_driver_in_another_context) {
  static std::uint64_t current = 0;
  current = 7;
  driver::RealDriver with_contexts = real;
  with_contexts.cuCtxGetCurrent = [](CUcontext* out) {
    return *out = reinterpret_cast<CUcontext>(current), CUDA_SUCCESS;
  };
  ASSERT_NE(pool.allocate(with_contexts, DeviceOrdinal{0}, ContextId{7}, 4096, 1), 0u);
  fill(100 * MiB, 9);
  keep_one_of(10);
  FakePause pause;
  for (const std::uint64_t context : {std::uint64_t{8}, std::uint64_t{7}}) {
    current = context;
    driver->calls = {};
    ASSERT_NE(pool.mesh(with_contexts, DeviceOrdinal{0}, pause, {1, 1, 1}), 0u);
    EXPECT_EQ(driver->calls.copy != 0, context == 8);
    EXPECT_EQ(driver->calls.launch != 0, context == 7);
    EXPECT_TRUE(all_is_right());
  }
}

TEST_F(MeshingCallsTest, copies_that_the_kernel_has_not_begun_are_made_by_the_driver) {
  for (const int launches : {0, 1}) {
    leave_some(150 * MiB, 4096, 10);
    driver->launches_refused_after = launches;
    ASSERT_GT(mesh(50 * MiB), 0u);
    driver->launches_refused_after = -1;
    EXPECT_GT(driver->calls.launch, launches);
    EXPECT_GT(driver->calls.copy, 0);
    ASSERT_TRUE(all_is_right()) << launches;
    ASSERT_EQ(counts().lost_bytes, 0u);
    while (!blocks.empty()) free_one();
    pool.give_back(real, no_device, UINT64_MAX);
  }
  expect_all_goes();
}

}  // namespace
}  // namespace cuwarden::pool
