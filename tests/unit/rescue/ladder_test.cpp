// The ladder on a driver of the test's own: what lacks, what helps, and what must not be touched.
#include "runtime_hooks/rescue/ladder.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace cuwarden::rescue {
namespace {

struct FakeDriver {
  std::map<CUstream, int> polls_until_idle;  // of each stream; never: a negative number
  std::set<CUstream> capturing;
  std::vector<std::string> calls;
  std::set<CUstream> synchronised;
};
FakeDriver fake;

std::string name_of(CUstream stream) {
  return std::to_string(reinterpret_cast<std::uintptr_t>(stream));
}

driver::RealDriver fake_functions() {
  driver::RealDriver real;
  real.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode*) { return CUDA_SUCCESS; };
  real.cuStreamIsCapturing = [](CUstream stream, CUstreamCaptureStatus* status) {
    *status = fake.capturing.contains(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                              : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  real.cuStreamQuery = [](CUstream stream) {
    fake.calls.push_back("query " + name_of(stream));
    int& polls = fake.polls_until_idle[stream];
    if (polls == 0) return CUDA_SUCCESS;
    polls -= polls > 0 ? 1 : 0;
    return CUDA_ERROR_NOT_READY;
  };
  real.cuStreamSynchronize = [](CUstream stream) {
    fake.calls.push_back("synchronise " + name_of(stream));
    fake.synchronised.insert(stream);
    return CUDA_SUCCESS;
  };
  return real;
}

CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(number); }

class LadderTest : public testing::Test {
 protected:
  LadderTest() { fake = {}; }

  // The rungs that were climbed, with what came of them.
  std::vector<std::pair<Rung, RungOutcome>> climb(const Settings& settings, bool patient = true,
                                                  bool on_device = true) {
    Ladder ladder(settings);
    std::vector<std::pair<Rung, RungOutcome>> all;
    const auto request = [&] {
      ++requests;
      return is_there() ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    };
    const auto trim = [&] { return trimmed = has_idle_pools; };
    const Attempt attempt{real, pending, here, on_device, request, trim};
    served = ladder.climb(attempt, patient, [&](const Climbed& climbed) {
      all.emplace_back(climbed.rung, climbed.outcome);
    });
    return all;
  }
  using Rungs = std::vector<std::pair<Rung, RungOutcome>>;

  const driver::RealDriver real = fake_functions();
  const ContextId here{7}, elsewhere{8};
  PendingFrees pending;
  std::function<bool()> is_there = [] { return false; };
  bool has_idle_pools = false, trimmed = false, served = false;
  int requests = 0;
  const Settings settings{.enabled = true, .sync_timeout_ns = 200'000'000};
};

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
  EXPECT_TRUE(fake.calls.empty());
}

TEST_F(LadderTest, a_stream_with_pending_frees_is_synchronised_when_it_has_nothing_to_do) {
  pending.freed_in(stream(16), here);
  pending.freed_in(stream(32), here);
  fake.polls_until_idle[stream(32)] = 5;
  is_there = [] { return fake.synchronised.contains(stream(32)); };
  EXPECT_EQ(climb(settings).back(), std::pair(Rung::synchronise, RungOutcome::served));
  EXPECT_TRUE(fake.synchronised.contains(stream(16)));
  // Never while it was busy.
  EXPECT_EQ(std::ranges::count(fake.calls, "query 32"), 6);
  EXPECT_EQ(fake.calls.back(), "synchronise 32");
}

TEST_F(LadderTest, a_stream_that_never_ends_is_waited_for_as_long_as_is_allowed) {
  pending.freed_in(stream(16), here);
  fake.polls_until_idle[stream(16)] = -1;
  const std::uint64_t before = now_ns();
  const Rungs all = climb({.enabled = true, .sync_timeout_ns = 30'000'000});
  EXPECT_EQ(all[1], std::pair(Rung::synchronise, RungOutcome::timed_out));
  EXPECT_GE(now_ns() - before, 30'000'000u);
  EXPECT_LT(now_ns() - before, 2'000'000'000u);
  EXPECT_TRUE(fake.synchronised.empty());
}

TEST_F(LadderTest, a_stream_under_capture_is_left_alone) {
  pending.freed_in(stream(16), here);
  fake.capturing.insert(stream(16));
  climb(settings);
  EXPECT_TRUE(fake.calls.empty());
}

TEST_F(LadderTest, nobody_asks_about_a_stream_that_was_destroyed_or_whose_context_has_ended) {
  pending.freed_in(stream(16), here);
  pending.stream_ends(stream(16));
  climb(settings);
  EXPECT_TRUE(fake.calls.empty());
  pending.freed_in(stream(16), here);
  pending.all_end();
  climb(settings);
  EXPECT_TRUE(fake.calls.empty());
  // Its handle may come again.
  pending.freed_in(stream(16), here);
  climb(settings);
  EXPECT_EQ(fake.calls.size(), 2u);
}

TEST_F(LadderTest, the_default_stream_is_that_of_the_current_context) {
  pending.freed_in(nullptr, elsewhere);
  climb(settings);
  EXPECT_TRUE(fake.calls.empty());
  pending.all_end();
  pending.freed_in(CU_STREAM_LEGACY, here);
  climb(settings);
  EXPECT_EQ(fake.calls, (std::vector<std::string>{"query 0", "synchronise 0"}));
}

TEST_F(LadderTest, a_stream_of_the_threads_own_is_not_for_others_to_ask_about) {
  pending.freed_in(CU_STREAM_PER_THREAD, here);
  climb(settings);
  EXPECT_TRUE(fake.calls.empty());
}

TEST_F(LadderTest, more_streams_than_are_kept_do_no_harm) {
  for (std::uintptr_t i = 1; i < 5000; ++i) pending.freed_in(stream(16 * i), here);
  climb(settings);
  EXPECT_GE(fake.synchronised.size(), 512u);
  EXPECT_LT(fake.synchronised.size(), 4999u);
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

TEST_F(LadderTest, the_device_is_left_alone_where_the_hosts_memory_lacks) {
  pending.freed_in(stream(16), here);
  has_idle_pools = true;
  EXPECT_EQ(climb(settings, true, false), (Rungs{{Rung::retry, RungOutcome::no_memory}}));
  EXPECT_TRUE(fake.calls.empty());
  EXPECT_FALSE(trimmed);
}

TEST_F(LadderTest, a_ladder_that_found_nothing_is_climbed_again_when_something_was_freed) {
  Ladder ladder(settings);
  const Situation before{.device = 1, .live_bytes = 1000, .pending = 5};
  EXPECT_TRUE(ladder.is_worth_climbing(before));
  ladder.found_nothing(before);
  EXPECT_FALSE(ladder.is_worth_climbing(before));
  EXPECT_FALSE(ladder.is_worth_climbing({1, 2000, 5}));
  EXPECT_TRUE(ladder.is_worth_climbing({1, 999, 5}));
  EXPECT_TRUE(ladder.is_worth_climbing({1, 1000, 6}));
  EXPECT_TRUE(ladder.is_worth_climbing({0, 1000, 5})) << "another device";
  sleep_ns(120'000'000);
  EXPECT_TRUE(ladder.is_worth_climbing(before)) << "others may have gone";
}

}  // namespace
}  // namespace cuwarden::rescue
