// The ladder: the order of its rungs, how long each may take, and when it is climbed again.
#include <algorithm>
#include <functional>

#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"
#include "tests/unit/rescue/fake_ladder.hpp"

namespace cuwarden::rescue {
namespace {

TEST_F(LadderTest, a_request_that_the_driver_can_serve_by_now_takes_one_more_try) {
  is_there = [] { return true; };
  EXPECT_EQ(climb(settings), (Rungs{{RungName::retry, RungOutcome::served}}));
  EXPECT_TRUE(served);
  EXPECT_EQ(requests, 1);
}

TEST_F(LadderTest,
       a_request_that_no_rung_helps_has_each_rungs_outcome_and_is_not_repeated_in_vain) {
  EXPECT_EQ(climb(settings), (Rungs{{RungName::retry, RungOutcome::no_memory},
                                    {RungName::synchronise, RungOutcome::nothing_to_do},
                                    {RungName::trim, RungOutcome::nothing_to_do}}));
  EXPECT_FALSE(served);
  EXPECT_EQ(requests, 1);
  EXPECT_TRUE(fake.recorded.empty());
}

TEST_F(LadderTest, frees_are_synchronised_when_the_device_has_come_to_them) {
  pending.freed_in(stream(16), here);
  pending.freed_in(stream(32), here);
  fake.polls_until_idle[stream(32)] = 5;
  is_there = [] { return fake.synchronised.size() == 2; };
  EXPECT_EQ(climb(settings).back(), std::pair(RungName::synchronise, RungOutcome::served));
  EXPECT_EQ(fake.synchronised, (std::vector{stream(16), stream(32)}));
  EXPECT_EQ(fake.queries, 1 + 6);
  climb(settings);
  EXPECT_EQ(fake.recorded.size(), 2u) << "nothing pends there any more";
}

TEST_F(LadderTest, a_stream_that_works_on_is_waited_for_as_long_as_is_allowed) {
  pending.freed_in(stream(16), here);
  fake.polls_until_idle[stream(16)] = -1;
  const std::uint64_t before = clock.now_ns();
  const Rungs all = climb({.pool = PoolMode::rescue, .sync_timeout_ns = 30'000'000});
  EXPECT_EQ(all[1], std::pair(RungName::synchronise, RungOutcome::timed_out));
  EXPECT_GE(clock.now_ns() - before, 30'000'000u);
  EXPECT_LT(clock.now_ns() - before, 2'000'000'000u);
  fake.polls_until_idle[stream(16)] = 0;
  EXPECT_EQ(climb(settings)[1], std::pair(RungName::synchronise, RungOutcome::no_memory))
      << "the free is still known";
}

TEST_F(LadderTest, another_error_of_the_driver_ends_the_ladder_at_once) {
  Settings waits = settings;
  waits.wait_ns = 60'000'000'000;
  refusal = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(climb(waits), (Rungs{{RungName::retry, RungOutcome::other_error}}));
  EXPECT_FALSE(served);
  refusal = CUDA_ERROR_OUT_OF_MEMORY;
  is_there = [this] {
    if (requests == 3) refusal = CUDA_ERROR_ILLEGAL_ADDRESS;
    return false;
  };
  EXPECT_EQ(climb(waits).back(), std::pair(RungName::wait, RungOutcome::other_error));
}

TEST_F(LadderTest, the_pool_gives_back_what_it_keeps) {
  const std::uint64_t address = pools.allocate(5000);
  pool::driver->free_bytes = 0;
  is_there = has_device_a_page;
  const auto last = [&] { return climb(settings, false).back(); };
  EXPECT_EQ(last(), std::pair(RungName::give_back, RungOutcome::nothing_to_do));
  free_in_pool(address);
  EXPECT_EQ(last(), std::pair(RungName::give_back, RungOutcome::served));
}

TEST_F(LadderTest, the_pool_gives_back_page_locked_memory_for_a_request_of_host_memory) {
  auto* const memory = reinterpret_cast<void*>(pools.allocate_pinned(5000, 0));
  ASSERT_TRUE(serving::is_of_pinned_pool(memory));
  ASSERT_EQ(serving::free_of_pinned_pool(real, memory), CUDA_SUCCESS);
  EXPECT_EQ(fake.locked.size(), 1u);
  is_there = [] { return fake.locked.empty(); };
  EXPECT_EQ(climb(settings, true, false).back(),
            std::pair(RungName::give_back, RungOutcome::served));
}

TEST_F(LadderTest, the_pool_gives_back_its_memory_during_a_capture_too) {
  free_in_pool(pools.allocate(5000));
  captures.begins(stream(16), false, here, CU_STREAM_CAPTURE_MODE_RELAXED);
  fake.captured.insert(stream(16));
  is_there = [] { return pool::driver->handles.empty(); };
  EXPECT_EQ(climb(settings).back(), std::pair(RungName::give_back, RungOutcome::served));
}

TEST_F(LadderTest, the_pool_serves_requests_during_captures_that_do_not_forbid_them) {
  for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                          CU_STREAM_CAPTURE_MODE_RELAXED}) {
    captures.begins(stream(16), false, here, mode);
    EXPECT_EQ(pools.allocate(5000) != 0, mode == CU_STREAM_CAPTURE_MODE_RELAXED) << mode;
    std::thread([&] {
      EXPECT_EQ(pools.allocate(5000) != 0, mode != CU_STREAM_CAPTURE_MODE_GLOBAL) << mode;
      capture_mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
      EXPECT_NE(pools.allocate(5000), 0u) << mode;
    }).join();
    captures.ended(stream(16), false);
  }
}

TEST_F(LadderTest, a_call_that_may_end_captures_is_not_repeated_beside_one) {
  captures.begins(stream(16), false, here, CU_STREAM_CAPTURE_MODE_RELAXED);
  thing = ledger::Asked::copy;
  is_there = [] { return true; };
  const Rungs all = climb(settings);
  EXPECT_EQ(requests, 0);
  EXPECT_EQ(all.front(), std::pair(RungName::retry, RungOutcome::unsafe));
  EXPECT_FALSE(served);
  thing = ledger::Asked::memory;
  EXPECT_EQ(climb(settings).front(), std::pair(RungName::retry, RungOutcome::served));
  captures.ended(stream(16), false);
  thing = ledger::Asked::copy;
  EXPECT_EQ(climb(settings).front(), std::pair(RungName::retry, RungOutcome::served));
}

TEST_F(LadderTest, the_ledger_has_each_rung_while_it_runs_and_how_long_a_wait_lasts) {
  Settings waits = settings;
  waits.wait_ns = 100'000'000;
  begin_incident();
  std::vector<std::uint64_t> waited_ns;
  is_there = [&] {
    const ledger::IncidentRungView rung = last_rung();
    EXPECT_EQ(rung.outcome, RungOutcome::under_way);
    EXPECT_EQ(rung.rung, requests == 1 ? RungName::retry : RungName::wait);
    if (requests > 1) waited_ns.push_back(rung.duration_ns);
    return false;
  };
  climb(waits);
  EXPECT_GT(waited_ns.size(), 2u);
  EXPECT_EQ(std::ranges::adjacent_find(waited_ns, std::greater_equal()), waited_ns.end());
  EXPECT_EQ(last_rung().outcome, RungOutcome::timed_out);
}

TEST_F(LadderTest, the_ledger_has_a_threads_request_while_a_rung_runs_for_any_refusal) {
  begin_incident();
  is_first = false;
  const std::uint64_t row = writer->threads.mine().value;
  const auto under_way = [&] {
    ledger::ReadError error;
    return ledger::Reader::open(writer->file.bytes(), error)->thread(row).value().under_way;
  };
  EXPECT_FALSE(under_way());
  std::vector<RungName> seen;
  is_there = [&] {
    const auto request = under_way();
    EXPECT_TRUE(request);
    if (!request) return true;
    EXPECT_EQ(request->incident, incident);
    EXPECT_EQ(request->bytes, bytes);
    EXPECT_LE(request->since_ns, writer->time.now_ns());
    seen.push_back(request->rung);
    return false;
  };
  Settings waits = settings;
  waits.wait_ns = 1'000'000;
  climb(waits);
  EXPECT_EQ(seen, (std::vector{RungName::retry, RungName::wait}));
  EXPECT_FALSE(under_way());
}

TEST_F(LadderTest, memory_pools_are_trimmed_if_they_keep_memory) {
  memory_pools.used_on(device);
  fake.idle_in_memory_pools = 5000;
  is_there = [] { return fake.idle_in_memory_pools == 0; };
  EXPECT_EQ(climb(settings).back(), std::pair(RungName::trim, RungOutcome::served));
}

TEST_F(LadderTest, other_processes_memory_is_waited_for_if_the_user_allows_it) {
  Settings waits = settings;
  waits.wait_ns = 10'000'000'000;
  is_there = [this] { return requests > 3; };
  EXPECT_EQ(climb(waits).back(), std::pair(RungName::wait, RungOutcome::served));
  waits.wait_ns = 50'000'000;
  is_there = [] { return false; };
  EXPECT_EQ(climb(waits).back(), std::pair(RungName::wait, RungOutcome::timed_out));
  EXPECT_EQ(climb(waits, false).back().first, RungName::trim)
      << "a caching allocator empties its own cache first";
}

TEST_F(LadderTest, a_request_does_not_wait_if_other_processes_could_not_make_room_for_it) {
  Settings waits = settings;
  waits.wait_ns = 10'000'000'000;
  fake.total_bytes = bytes - 1;
  EXPECT_EQ(climb(waits).back().first, RungName::trim);
}

TEST_F(LadderTest, a_request_does_not_wait_if_it_fits_only_without_this_processs_own_contexts) {
  Settings waits = settings;
  waits.wait_ns = 10'000'000;
  fake.total_bytes = bytes + 100;
  const auto last = [&](std::uint64_t implicit_bytes) {
    Ladder ladder(waits, clock);
    return climb(ladder, RescueConditions{.implicit_bytes = implicit_bytes}).back();
  };
  EXPECT_EQ(last(100), std::pair(RungName::wait, RungOutcome::timed_out));
  EXPECT_EQ(last(101).first, RungName::trim);
}

TEST_F(LadderTest, the_hosts_memory_is_taken_last_of_all) {
  Settings spilling = settings;
  spilling.spill.bytes = 500 * pool::MiB;
  spilling.wait_ns = 20'000'000;
  spill_obstacle = LeftOut::none;
  bytes = 8 * pool::MiB;
  pool::driver->free_bytes = 0;
  EXPECT_EQ(climb(spilling).back(), std::pair(RungName::spill, RungOutcome::served));
  EXPECT_TRUE(served);
  const auto memory = serving::pool_memory_around(pools, served_at);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->start, served_at);
  EXPECT_EQ(memory->serial, 0u) << "spilled";
  const auto rungs = climb(spilling);
  EXPECT_EQ(rungs[3], std::pair(RungName::wait, RungOutcome::timed_out));
  EXPECT_EQ(climb(spilling, false).back().first, RungName::trim)
      << "a caching allocator empties its own cache first";
  process.host_left = 0;
  EXPECT_EQ(climb(spilling).back(), std::pair(RungName::spill, RungOutcome::no_memory));
  EXPECT_FALSE(served);
}

TEST_F(LadderTest, the_driver_serves_a_request_that_the_device_has_room_for_when_spilling_is_due) {
  Settings spilling = settings;
  spilling.spill.bytes = 500 * pool::MiB;
  spill_obstacle = LeftOut::none;
  bytes = 8 * pool::MiB;
  is_there = [this] { return requests == 2; };
  EXPECT_EQ(climb(spilling).back(), std::pair(RungName::spill, RungOutcome::served));
  EXPECT_EQ(served_at, 0u);
}

TEST_F(LadderTest, the_device_is_left_alone_if_host_memory_is_lacking) {
  pending.freed_in(stream(16), here);
  memory_pools.used_on(device);
  fake.idle_in_memory_pools = 5000;
  EXPECT_EQ(climb(settings, true, false), (Rungs{{RungName::retry, RungOutcome::no_memory}}));
  EXPECT_TRUE(fake.recorded.empty());
  EXPECT_EQ(fake.idle_in_memory_pools, 5000u);
}

class LadderIsClimbedAgain : public LadderTest {
 protected:
  bool climb_with(Ladder& ladder, const RescueConditions& conditions,
                  std::vector<RungName>* rungs = nullptr) {
    for (const auto& [rung, outcome] : climb(ladder, spilling(conditions)))
      if (rungs != nullptr) rungs->push_back(rung);
    return served;
  }
  RescueConditions spilling(RescueConditions conditions) const {
    conditions.spill_obstacle = spill_obstacle;
    return conditions;
  }
  LadderIsClimbedAgain() {
    bytes = 8 * pool::MiB;
    pool::driver->free_bytes = process.host_left = 0;
  }
  const RescueConditions before{.live_bytes = 1000, .noted = 5};
};

TEST_F(LadderIsClimbedAgain, after_a_free_or_for_a_smaller_request) {
  Ladder ladder(settings, clock);
  EXPECT_TRUE(is_worth_climbing(ladder, before));
  climb_with(ladder, before);
  EXPECT_FALSE(is_worth_climbing(ladder, before));
  Request larger = request_of(), smaller = larger, for_a_stream = larger;
  larger.bytes *= 2;
  smaller.bytes -= 1;
  for_a_stream.asked = ledger::Asked::stream;
  EXPECT_FALSE(ladder.is_worth_climbing(larger, {.live_bytes = 2000, .noted = 5}));
  EXPECT_TRUE(ladder.is_worth_climbing(smaller, before));
  EXPECT_TRUE(is_worth_climbing(ladder, {.live_bytes = 999, .noted = 5}));
  EXPECT_TRUE(is_worth_climbing(ladder, {.live_bytes = 1000, .noted = 6}));
  EXPECT_TRUE(ladder.is_worth_climbing(request_of(false), before)) << "another device";
  EXPECT_TRUE(ladder.is_worth_climbing(for_a_stream, before));
  clock.sleep_ns(120'000'000);
  EXPECT_TRUE(is_worth_climbing(ladder, before)) << "others may have gone";
}

TEST_F(LadderIsClimbedAgain, if_the_request_may_lie_elsewhere_unlike_the_refused_one) {
  Settings spilling_too = settings;
  spilling_too.spill.bytes = 500 * pool::MiB;
  Ladder ladder(spilling_too, clock);
  climb_with(ladder, before);
  EXPECT_FALSE(is_worth_climbing(ladder, before));
  spill_obstacle = LeftOut::none;
  EXPECT_TRUE(is_worth_climbing(ladder, spilling(before)));
  climb_with(ladder, before);
  EXPECT_FALSE(is_worth_climbing(ladder, spilling(before)));
}

TEST_F(LadderIsClimbedAgain, if_the_request_may_wait_now) {
  Settings waits = settings;
  waits.wait_ns = 10'000'000;
  Ladder ladder(waits, clock);
  RescueConditions impatient = before;
  impatient.is_last_resort_due = false;
  climb_with(ladder, impatient);
  EXPECT_FALSE(is_worth_climbing(ladder, impatient));
  EXPECT_TRUE(is_worth_climbing(ladder, before));
  climb_with(ladder, before);
  EXPECT_FALSE(is_worth_climbing(ladder, before));
}

TEST_F(LadderIsClimbedAgain,
       but_a_request_that_waited_in_vain_and_can_spill_does_not_wait_again_at_once) {
  Settings both = settings;
  both.spill.bytes = 500 * pool::MiB;
  both.wait_ns = 30'000'000;
  Ladder ladder(both, clock);
  std::vector<RungName> rungs;
  spill_obstacle = LeftOut::none;
  const auto last_two = [&] {
    rungs.clear();
    climb_with(ladder, before, &rungs);
    return std::pair(rungs.at(rungs.size() - 2), rungs.back());
  };
  EXPECT_EQ(last_two(), std::pair(RungName::wait, RungName::spill));
  EXPECT_EQ(last_two(), std::pair(RungName::spill, RungName::wait))
      << "the host has no room, so the request waits";
  process.host_left = UINT64_MAX;
  EXPECT_EQ(last_two(), std::pair(RungName::trim, RungName::spill));
  asked_device = DeviceOrdinal{1};
  EXPECT_EQ(last_two().first, RungName::wait);
  asked_device = device;
  clock.sleep_ns(330'000'000);
  EXPECT_EQ(last_two(), std::pair(RungName::wait, RungName::spill)) << "others may have gone";
}

TEST_F(LadderIsClimbedAgain,
       and_the_time_that_earlier_rungs_take_does_not_make_a_vain_wait_an_old_one) {
  Settings both = settings;
  both.spill.bytes = 500 * pool::MiB;
  both.wait_ns = 30'000'000;
  Ladder ladder(both, clock);
  spill_obstacle = LeftOut::none;
  climb_with(ladder, before);
  is_there = [this] {
    clock.sleep_ns(330'000'000);
    return false;
  };
  process.host_left = UINT64_MAX;
  std::vector<RungName> rungs;
  climb_with(ladder, before, &rungs);
  EXPECT_EQ(rungs.back(), RungName::spill);
  EXPECT_EQ(std::ranges::count(rungs, RungName::wait), 0);
}

TEST_F(LadderIsClimbedAgain, if_the_device_had_not_reached_the_pending_frees) {
  pending.freed_in(stream(16), here);
  fake.polls_until_idle[stream(16)] = -1;
  const Settings brief{.pool = PoolMode::rescue, .sync_timeout_ns = 5'000'000};
  Ladder ladder(brief, clock);
  climb_with(ladder, before);
  EXPECT_TRUE(is_worth_climbing(ladder, before));
}

}  // namespace
}  // namespace cuwarden::rescue
