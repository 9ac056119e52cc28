// Which rungs are climbed, in which order, how long, and when again.
#include <algorithm>

#include "tests/unit/rescue/fake_ladder.hpp"

namespace cuwarden::rescue {
namespace {

TEST_F(LadderTest, what_is_there_by_now_takes_one_more_try) {
  is_there = [] { return true; };
  EXPECT_EQ(climb(settings), (Rungs{{Rung::retry, RungOutcome::served}}));
  EXPECT_TRUE(served);
  EXPECT_EQ(requests, 1);
}

TEST_F(LadderTest, where_nothing_helps_every_rung_says_so_and_the_request_is_not_repeated_in_vain) {
  EXPECT_EQ(climb(settings), (Rungs{{Rung::retry, RungOutcome::no_memory},
                                    {Rung::synchronise, RungOutcome::nothing_to_do},
                                    {Rung::trim, RungOutcome::nothing_to_do}}));
  EXPECT_FALSE(served);
  EXPECT_EQ(requests, 1);
  EXPECT_TRUE(fake.recorded.empty());
}

TEST_F(LadderTest, frees_are_synchronised_when_the_device_has_come_to_them) {
  pending.freed_in(stream(16), here);
  pending.freed_in(stream(32), here);
  fake.polls_until_idle[stream(32)] = 5;
  is_there = [] { return fake.synchronised.size() == 2; };
  EXPECT_EQ(climb(settings).back(), std::pair(Rung::synchronise, RungOutcome::served));
  EXPECT_EQ(fake.synchronised, (std::vector{stream(16), stream(32)}));
  EXPECT_EQ(fake.queries, 1 + 6);
  climb(settings);
  EXPECT_EQ(fake.recorded.size(), 2u) << "nothing pends there any more";
}

TEST_F(LadderTest, a_stream_that_works_on_is_waited_for_as_long_as_is_allowed) {
  pending.freed_in(stream(16), here);
  fake.polls_until_idle[stream(16)] = -1;
  const std::uint64_t before = now_ns();
  const Rungs all = climb({.enabled = true, .sync_timeout_ns = 30'000'000});
  EXPECT_EQ(all[1], std::pair(Rung::synchronise, RungOutcome::timed_out));
  EXPECT_GE(now_ns() - before, 30'000'000u);
  EXPECT_LT(now_ns() - before, 2'000'000'000u);
  fake.polls_until_idle[stream(16)] = 0;
  EXPECT_EQ(climb(settings)[1], std::pair(Rung::synchronise, RungOutcome::no_memory))
      << "it is known still";
}

TEST_F(LadderTest, another_error_ends_it_at_once) {
  Settings waits = settings;
  waits.wait_ns = 60'000'000'000;
  refusal = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(climb(waits), (Rungs{{Rung::retry, RungOutcome::other_error}}));
  EXPECT_FALSE(served);
  refusal = CUDA_ERROR_OUT_OF_MEMORY;
  is_there = [this] {
    if (requests == 3) refusal = CUDA_ERROR_ILLEGAL_ADDRESS;
    return false;
  };
  EXPECT_EQ(climb(waits).back(), std::pair(Rung::wait, RungOutcome::other_error));
}

TEST_F(LadderTest, the_pool_gives_back_what_it_keeps) {
  has_pool = true;
  is_there = [this] { return pool_emptied; };
  const auto last = [&] { return climb(settings).back(); };
  EXPECT_EQ(last(), std::pair(Rung::pool, RungOutcome::nothing_to_do));
  pool_keeps = true;
  EXPECT_EQ(last(), std::pair(Rung::pool, RungOutcome::served));
  pool_emptied = false;
  EXPECT_EQ(climb(settings, true, false).back(), std::pair(Rung::pool, RungOutcome::served))
      << "page-locked memory likewise";
}

TEST_F(LadderTest, what_the_pool_must_not_give_now_is_asked_for_again) {
  has_pool = pool_keeps = pool_must_not = true;
  Ladder ladder(settings);
  EXPECT_EQ(climb(settings).back(), std::pair(Rung::pool, RungOutcome::unsafe));
  const auto trim = [] { return false; };
  const auto refused = [] { return CUDA_ERROR_OUT_OF_MEMORY; };
  const auto is_unsafe = [](std::string_view) { return false; };
  const auto others = [] { return true; };
  const auto spill = [] { return RungOutcome::nothing_to_do; };
  const Situation situation{.device = 1, .bytes = 100};
  for (const bool must_not : {true, false}) {
    const auto empty = [&]() -> std::optional<bool> {
      return must_not ? std::nullopt : std::optional(false);
    };
    ladder.climb({real, pending, here, 0, 100, refused, may_enter, trim, empty, true, no_mesh,
                  false, is_unsafe, others, spill, not_captured},
                 situation, [](const Climbed&) {});
    EXPECT_EQ(ladder.is_worth_climbing(situation), must_not);
  }
}

TEST_F(LadderTest, what_the_pool_has_is_moved_where_giving_back_was_not_enough) {
  has_pool = can_mesh = true;
  is_there = [this] { return meshed > 0; };
  const auto last = [&](bool may_wait = true) { return climb(settings, may_wait).back(); };
  EXPECT_EQ(last(), std::pair(Rung::mesh, RungOutcome::served));
  is_there = [this] { return pool_emptied; };
  pool_keeps = true;
  EXPECT_EQ(last(), std::pair(Rung::pool, RungOutcome::served));
  EXPECT_EQ(meshed, 1) << "that was enough";
  pool_keeps = pool_emptied = false;
  EXPECT_EQ(last(), std::pair(Rung::mesh, RungOutcome::no_memory)) << "some went back";
  EXPECT_EQ(last(false).first, Rung::pool) << "whoever asks helps itself first";
  requests = 0;
  mesh_outcome = RungOutcome::timed_out;
  EXPECT_EQ(last(), std::pair(Rung::mesh, RungOutcome::timed_out));
  EXPECT_EQ(requests, 1) << "nothing came of it";
}

TEST_F(LadderTest, what_cannot_be_moved_is_not_tried_again_at_once) {
  can_mesh = true;
  const Situation again{.device = 1, .bytes = 5000};
  for (const RungOutcome outcome : {RungOutcome::unsafe, RungOutcome::timed_out}) {
    Ladder ladder(settings);
    mesh_outcome = outcome;
    EXPECT_EQ(climb(ladder).back(), std::pair(Rung::mesh, outcome));
    EXPECT_FALSE(ladder.is_worth_climbing(again));
  }
}

TEST_F(LadderTest, what_pends_is_tried_again_at_once_though_nothing_can_be_moved) {
  can_mesh = true;
  mesh_outcome = RungOutcome::timed_out;
  pending.freed_in(stream(16), here);
  fake.polls_until_idle[stream(16)] = -1;
  Ladder ladder({.enabled = true, .sync_timeout_ns = 10'000'000});
  EXPECT_EQ(climb(ladder).back(), std::pair(Rung::mesh, RungOutcome::timed_out));
  EXPECT_TRUE(ladder.is_worth_climbing({.device = 1, .bytes = 5000}));
}

TEST_F(LadderTest, each_rung_is_told_before_it_is_climbed) {
  Settings waits = settings;
  waits.wait_ns = 100'000'000;
  const Rungs all = climb(waits);
  std::vector<Rung> climbed;
  for (const auto& [rung, outcome] : all) climbed.push_back(rung);
  EXPECT_GT(std::count(begun_rungs.begin(), begun_rungs.end(), Rung::wait), 2)
      << "that it goes on, too";
  begun_rungs.erase(std::unique(begun_rungs.begin(), begun_rungs.end()), begun_rungs.end());
  EXPECT_EQ(begun_rungs, climbed);
}

TEST_F(LadderTest, nothing_is_moved_before_the_pool_could_give_back_what_it_keeps) {
  has_pool = pool_must_not = can_mesh = true;
  EXPECT_EQ(climb(settings).back(), std::pair(Rung::pool, RungOutcome::unsafe));
  EXPECT_EQ(meshed, 0);
}

TEST_F(LadderTest, pools_are_trimmed_where_they_keep_something) {
  has_idle_pools = true;
  is_there = [this] { return trimmed; };
  EXPECT_EQ(climb(settings).back(), std::pair(Rung::trim, RungOutcome::served));
}

TEST_F(LadderTest, what_others_give_back_is_waited_for_where_the_user_allows_it) {
  Settings waits = settings;
  waits.wait_ns = 10'000'000'000;
  is_there = [this] { return requests > 3; };
  EXPECT_EQ(climb(waits).back(), std::pair(Rung::wait, RungOutcome::served));
  waits.wait_ns = 50'000'000;
  is_there = [] { return false; };
  EXPECT_EQ(climb(waits).back(), std::pair(Rung::wait, RungOutcome::timed_out));
  EXPECT_EQ(climb(waits, false).back().first, Rung::trim) << "it helps itself first";
}

TEST_F(LadderTest, nobody_waits_for_what_others_could_not_make_room_for) {
  Settings waits = settings;
  waits.wait_ns = 10'000'000'000;
  may_others_help = false;
  EXPECT_EQ(climb(waits).back().first, Rung::trim);
}

TEST_F(LadderTest, the_hosts_memory_is_taken_last_of_all) {
  Settings spilling = settings;
  spilling.spills = true;
  spilling.wait_ns = 20'000'000;
  can_spill = true;
  EXPECT_EQ(climb(spilling).back(), std::pair(Rung::spill, RungOutcome::served));
  EXPECT_TRUE(served);
  const auto rungs = climb(spilling);
  EXPECT_EQ(rungs[3], std::pair(Rung::wait, RungOutcome::timed_out));
  spill_outcome = RungOutcome::no_memory;
  EXPECT_EQ(climb(spilling).back(), std::pair(Rung::spill, RungOutcome::no_memory));
  EXPECT_FALSE(served);
  spills = 0;
  climb(spilling, false);
  EXPECT_EQ(spills, 0) << "whoever asks helps itself first";
}

TEST_F(LadderTest, the_device_is_left_alone_where_the_hosts_memory_lacks) {
  pending.freed_in(stream(16), here);
  has_idle_pools = true;
  EXPECT_EQ(climb(settings, true, false), (Rungs{{Rung::retry, RungOutcome::no_memory}}));
  EXPECT_TRUE(fake.recorded.empty());
  EXPECT_FALSE(trimmed);
}

class ClimbedAgain : public LadderTest {
 protected:
  bool climb_with(Ladder& ladder, const Situation& situation, std::vector<Rung>* rungs = nullptr) {
    const auto request = [&] { return refusal; };
    const auto trim = [] { return false; };
    const auto keeps_nothing = []() -> std::optional<bool> { return false; };
    const auto is_unsafe = [](std::string_view) { return false; };
    const auto others = [] { return true; };
    const auto spill = [&] { return spill_outcome; };
    const auto note = [&](const Climbed& climbed) {
      if (rungs != nullptr && climbed.outcome != RungOutcome::under_way)
        rungs->push_back(climbed.rung);
    };
    return ladder.climb({real, pending, here, 0, 100, request, may_enter, trim, keeps_nothing,
                         false, no_mesh, false, is_unsafe, others, spill, not_captured},
                        spilling(situation), note);
  }
  Situation spilling(Situation situation) const {
    situation.can_spill = can_spill;
    return situation;
  }
  ClimbedAgain() { spill_outcome = RungOutcome::no_memory; }
  const Situation before{.device = 1, .live_bytes = 1000, .noted = 5, .bytes = 100};
};

TEST_F(ClimbedAgain, when_something_was_freed_or_less_is_asked_for) {
  Ladder ladder(settings);
  EXPECT_TRUE(ladder.is_worth_climbing(before));
  climb_with(ladder, before);
  EXPECT_FALSE(ladder.is_worth_climbing(before));
  EXPECT_FALSE(ladder.is_worth_climbing({1, 2000, 5, 200}));
  EXPECT_TRUE(ladder.is_worth_climbing({1, 1000, 5, 99}));
  EXPECT_TRUE(ladder.is_worth_climbing({1, 999, 5, 100}));
  EXPECT_TRUE(ladder.is_worth_climbing({1, 1000, 6, 100}));
  EXPECT_TRUE(ladder.is_worth_climbing({0, 1000, 5, 100})) << "another device";
  sleep_ns(120'000'000);
  EXPECT_TRUE(ladder.is_worth_climbing(before)) << "others may have gone";
}

TEST_F(ClimbedAgain, when_it_may_lie_elsewhere_where_what_was_refused_could_not) {
  Settings spilling_too = settings;
  spilling_too.spills = true;
  Ladder ladder(spilling_too);
  climb_with(ladder, before);
  EXPECT_FALSE(ladder.is_worth_climbing(before));
  can_spill = true;
  EXPECT_TRUE(ladder.is_worth_climbing(spilling(before)));
  climb_with(ladder, before);
  EXPECT_FALSE(ladder.is_worth_climbing(spilling(before)));
}

TEST_F(ClimbedAgain, when_it_may_wait_now) {
  Settings waits = settings;
  waits.wait_ns = 10'000'000;
  Ladder ladder(waits);
  Situation impatient = before;
  impatient.is_last_resort_due = false;
  climb_with(ladder, impatient);
  EXPECT_FALSE(ladder.is_worth_climbing(impatient));
  EXPECT_TRUE(ladder.is_worth_climbing(before));
  climb_with(ladder, before);
  EXPECT_FALSE(ladder.is_worth_climbing(before));
}

TEST_F(ClimbedAgain, who_waited_in_vain_and_can_spill_does_not_wait_again_at_once) {
  Settings both = settings;
  both.spills = true;
  both.wait_ns = 30'000'000;
  Ladder ladder(both);
  std::vector<Rung> rungs;
  can_spill = true;
  const auto last_two = [&] {
    rungs.clear();
    climb_with(ladder, before, &rungs);
    return std::pair(rungs.at(rungs.size() - 2), rungs.back());
  };
  EXPECT_EQ(last_two(), std::pair(Rung::wait, Rung::spill));
  EXPECT_EQ(last_two(), std::pair(Rung::spill, Rung::wait)) << "where there is no room for it";
  spill_outcome = RungOutcome::served;
  EXPECT_EQ(last_two(), std::pair(Rung::trim, Rung::spill));
  Situation on_another = before;
  on_another.device = 2;
  rungs.clear();
  climb_with(ladder, on_another, &rungs);
  EXPECT_EQ(rungs.at(rungs.size() - 2), Rung::wait);
  sleep_ns(330'000'000);
  EXPECT_EQ(last_two(), std::pair(Rung::wait, Rung::spill)) << "others may have gone";
}

TEST_F(ClimbedAgain, where_the_device_had_not_come_to_what_pends) {
  pending.freed_in(stream(16), here);
  fake.polls_until_idle[stream(16)] = -1;
  Ladder ladder({.enabled = true, .sync_timeout_ns = 5'000'000});
  climb_with(ladder, before);
  EXPECT_TRUE(ladder.is_worth_climbing(before));
}

}  // namespace
}  // namespace cuwarden::rescue
