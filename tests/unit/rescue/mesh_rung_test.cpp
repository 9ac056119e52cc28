// The rung that moves the pool's memory together: when it runs, and what it does not do in vain.
#include <algorithm>
#include <functional>

#include "tests/unit/rescue/fake_ladder.hpp"

namespace cuwarden::rescue {
namespace {

TEST_F(LadderTest, no_memory_is_moved_for_a_call_that_fails_although_much_is_free) {
  leave_one_block_in_each_page();
  pool::driver->free_bytes = 102400 * pool::MiB;
  thing = ledger::Asked::stream;
  bytes = 0;
  is_there = [] { return false; };
  climb(settings, true);
  EXPECT_EQ(requests, 1) << "steps for which there is room already are no reason to ask again";
  EXPECT_EQ(meshed_pages(), 0u);
}

TEST_F(LadderTest, the_pools_memory_is_moved_if_giving_back_was_not_enough) {
  const auto blocks = leave_one_block_in_each_page();
  is_there = has_device_a_page;
  const auto last = [&](bool may_wait = true) { return climb(settings, may_wait).back(); };
  EXPECT_EQ(last(false).first, RungName::give_back)
      << "a caching allocator empties its own cache first";
  EXPECT_EQ(last(), std::pair(RungName::mesh, RungOutcome::served));
  const std::uint64_t meshed = meshed_pages();
  EXPECT_NE(meshed, 0u);
  pool::driver->free_bytes = 0;
  is_there = [] { return false; };
  EXPECT_EQ(last(), std::pair(RungName::mesh, RungOutcome::no_memory)) << "some went back";
  EXPECT_GT(meshed_pages(), meshed);
}

TEST_F(LadderTest, no_memory_is_moved_if_giving_back_was_enough) {
  free_in_pool(leave_one_block_in_each_page().front());
  is_there = has_device_a_page;
  EXPECT_EQ(climb(settings).back(), std::pair(RungName::give_back, RungOutcome::served));
  EXPECT_EQ(meshed_pages(), 0u);
}

TEST_F(LadderTest, the_driver_is_not_asked_again_if_no_memory_could_be_moved) {
  leave_one_block_in_each_page();
  fake.polls_until_idle[nullptr] = -1;
  EXPECT_EQ(climb(settings).back(), std::pair(RungName::mesh, RungOutcome::timed_out));
  EXPECT_EQ(requests, 1);
}

TEST_F(LadderTest, a_move_that_was_not_possible_is_not_tried_again_at_once) {
  leave_one_block_in_each_page();
  const RescueConditions again{};
  for (const RungOutcome outcome : {RungOutcome::unsafe, RungOutcome::timed_out}) {
    Ladder ladder(settings, clock);
    process.is_memory_reached = outcome == RungOutcome::unsafe;
    fake.polls_until_idle[nullptr] = -1;
    EXPECT_EQ(climb(ladder).back(), std::pair(RungName::mesh, outcome));
    EXPECT_FALSE(is_worth_climbing(ladder, again));
  }
}

TEST_F(LadderTest, after_a_pause_in_vain_the_program_runs_for_many_times_its_length) {
  leave_one_block_in_each_page();
  is_there = has_device_a_page;
  const std::uint64_t begun_ns = clock.now_ns();
  fake.polls_until_idle[nullptr] = -1;
  EXPECT_EQ(climb(settings).back(), std::pair(RungName::mesh, RungOutcome::timed_out));
  const std::uint64_t ended_ns = clock.now_ns(), pause_ns = ended_ns - begun_ns;
  EXPECT_GE(pause_ns, 3'000'000u);
  fake.polls_until_idle[nullptr] = 0;
  clock.advance(vain_times * pause_ns - 1);
  EXPECT_EQ(climb(settings).back(), std::pair(RungName::mesh, RungOutcome::timed_out));
  EXPECT_EQ(clock.now_ns(), ended_ns + vain_times * pause_ns - 1) << "no pause";
  clock.advance(1);
  EXPECT_EQ(climb(settings).back(), std::pair(RungName::mesh, RungOutcome::served));
}

TEST_F(LadderTest, pending_frees_are_tried_again_at_once_even_if_nothing_can_be_moved) {
  leave_one_block_in_each_page();
  pending.freed_in(stream(16), here);
  fake.polls_until_idle[stream(16)] = fake.polls_until_idle[nullptr] = -1;
  const Settings brief{.pool = PoolMode::rescue, .sync_timeout_ns = 10'000'000};
  Ladder ladder(brief, clock);
  EXPECT_EQ(climb(ladder).back(), std::pair(RungName::mesh, RungOutcome::timed_out));
  EXPECT_TRUE(is_worth_climbing(ladder, {}));
}

TEST_F(LadderTest, nothing_is_moved_during_a_capture) {
  leave_one_block_in_each_page();
  captures.begins(stream(16), false, here, CU_STREAM_CAPTURE_MODE_RELAXED);
  fake.captured.insert(stream(16));
  EXPECT_EQ(climb(settings).back(), std::pair(RungName::mesh, RungOutcome::unsafe));
  EXPECT_EQ(meshed_pages(), 0u);
}

}  // namespace
}  // namespace cuwarden::rescue
