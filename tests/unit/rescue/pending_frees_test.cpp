// Pending frees: the streams that a refused request waits for, and those that it leaves alone.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/unit/rescue/fake_ladder.hpp"

namespace cuwarden::rescue {
namespace {

TEST_F(LadderTest, frees_during_a_wait_for_others_are_known_the_next_time) {
  pending.freed_in(stream(16), here);
  is_there = [this] {
    if (requests == 2) pending.freed_in(stream(16), here);
    return false;
  };
  climb(settings);
  climb(settings);
  EXPECT_EQ(fake.recorded.size(), 2u);
}

// Begins a capture of the stream, as the hook does.
void begin_capture(tracking::Captures& captures, PendingFrees& pending, CUstream stream,
                   ContextId context) {
  EXPECT_TRUE(captures.begins(stream, false, context, CU_STREAM_CAPTURE_MODE_GLOBAL));
  pending.capture_begins();
  fake.captured.insert(stream);
}

void end_capture(tracking::Captures& captures, CUstream stream) {
  fake.captured.erase(stream);
  captures.ended(stream, false);
}

TEST_F(LadderTest, a_captured_stream_is_left_out_until_its_capture_has_ended) {
  pending.freed_in(stream(16), here);
  pending.freed_in(stream(32), here);
  begin_capture(captures, pending, stream(16), here);
  EXPECT_EQ(climb(settings)[1], std::pair(RungName::synchronise, RungOutcome::unsafe));
  EXPECT_EQ(fake.recorded, std::vector{stream(32)});
  end_capture(captures, stream(16));
  is_there = [] { return fake.synchronised.size() == 2; };
  EXPECT_EQ(climb(settings).back(), std::pair(RungName::synchronise, RungOutcome::served));
  EXPECT_EQ(fake.recorded, (std::vector{stream(32), stream(16)}));
}

TEST_F(LadderTest, default_streams_are_left_out_while_another_stream_is_captured) {
  pending.freed_in(nullptr, here);
  begin_capture(captures, pending, stream(16), here);
  EXPECT_EQ(climb(settings)[1], std::pair(RungName::synchronise, RungOutcome::unsafe));
  EXPECT_TRUE(fake.recorded.empty() && fake.synchronised.empty());
  end_capture(captures, stream(16));
  climb(settings);
  EXPECT_EQ(fake.synchronised, std::vector{CU_STREAM_LEGACY});
}

TEST_F(LadderTest, a_request_is_repeated_without_an_end_of_another_threads_capture) {
  begin_capture(captures, pending, stream(16), here);
  is_there = [] { return may_end_captures(), true; };
  EXPECT_EQ(climb(settings).back(), std::pair(RungName::retry, RungOutcome::served));
  EXPECT_EQ(capture_mode, CU_STREAM_CAPTURE_MODE_GLOBAL) << "the thread has its own mode again";
}

TEST_F(LadderTest, a_stream_that_was_destroyed_or_whose_context_has_ended_is_not_asked_about) {
  pending.freed_in(stream(16), here);
  pending.stream_ends(stream(16));
  climb(settings);
  EXPECT_TRUE(fake.recorded.empty());
  pending.freed_in(stream(16), here);
  pending.context_ends(elsewhere);
  pending.freed_in(nullptr, here);
  pending.context_ends(here);
  climb(settings);
  EXPECT_TRUE(fake.recorded.empty());
  // The driver may give the handle of a destroyed stream to a new one.
  pending.freed_in(stream(16), here);
  pending.freed_in(stream(32), elsewhere);
  pending.context_ends(elsewhere);
  climb(settings);
  EXPECT_EQ(fake.recorded, std::vector{stream(16)});
  pending.freed_in(stream(16), here);
  pending.context_ends({});
  climb(settings);
  EXPECT_EQ(fake.recorded.size(), 1u);
}

TEST_F(LadderTest, each_context_has_a_default_stream_and_the_current_ones_is_asked) {
  pending.freed_in(nullptr, elsewhere);
  climb(settings);
  EXPECT_TRUE(fake.recorded.empty());
  pending.freed_in(CU_STREAM_LEGACY, here);
  pending.freed_in(nullptr, here);
  climb(settings);
  EXPECT_TRUE(fake.recorded.empty()) << "an event there is a barrier";
  EXPECT_EQ(fake.synchronised, std::vector{CU_STREAM_LEGACY});
  climb(settings);
  EXPECT_EQ(fake.synchronised.size(), 1u) << "the stream has no pending free any more";
}

TEST_F(LadderTest, streams_of_other_contexts_are_waited_for_if_the_contexts_live) {
  pending.freed_in(stream(16), elsewhere);
  pending.freed_in(nullptr, elsewhere);
  pending.freed_in(CU_STREAM_PER_THREAD, elsewhere);
  EXPECT_EQ(climb(settings)[1], std::pair(RungName::synchronise, RungOutcome::nothing_to_do));
  EXPECT_TRUE(fake.entered.empty());
  contexts.created(device, elsewhere);
  fake.polls_until_idle[stream(16)] = 3;
  is_there = [] { return fake.synchronised.size() == 1; };
  EXPECT_EQ(climb(settings).back(), std::pair(RungName::synchronise, RungOutcome::served));
  EXPECT_EQ(fake.entered, std::vector(1, reinterpret_cast<CUcontext>(elsewhere.value)));
  EXPECT_EQ(fake.recorded, std::vector{stream(16)})
      << "the other context's default streams are left alone";
  climb(settings);
  EXPECT_EQ(fake.recorded.size(), 1u) << "the stream has no pending free any more";
}

TEST_F(LadderTest, other_contexts_are_left_alone_if_the_current_one_gives_enough) {
  contexts.created(device, elsewhere);
  pending.freed_in(stream(16), elsewhere);
  pending.freed_in(stream(32), here);
  std::thread([this] { pending.freed_in(CU_STREAM_PER_THREAD, here); }).join();
  is_there = [] { return !fake.synchronised.empty(); };
  EXPECT_EQ(climb(settings).back(), std::pair(RungName::synchronise, RungOutcome::served));
  EXPECT_EQ(fake.recorded, std::vector{stream(32)});
  EXPECT_TRUE(fake.entered.empty());
}

TEST_F(LadderTest, a_context_that_ends_during_the_wait_for_it_is_not_asked_again) {
  contexts.created(device, elsewhere);
  for (const ContextId ended : {elsewhere, ContextId{}}) {
    pending.freed_in(stream(16), elsewhere);
    fake.polls_until_idle[stream(16)] = -1;
    PendingFrees::AwaitedEvents events(pending, real, contexts, here, device, clock);
    EXPECT_FALSE(events.any());
    EXPECT_TRUE(events.add_others());
    EXPECT_FALSE(events.synchronise_reached());
    EXPECT_TRUE(events.any());
    pending.context_ends(ended);
    const int asked = fake.queries;
    EXPECT_FALSE(events.synchronise_reached());
    EXPECT_FALSE(events.any());
    EXPECT_EQ(fake.queries, asked);
    EXPECT_EQ(fake.events.size(), 1u);
    fake.events.clear();  // as the context's end does
  }
}

TEST_F(LadderTest, during_a_capture_other_contexts_streams_get_events_but_for_captured_ones) {
  contexts.created(device, elsewhere);
  pending.freed_in(stream(16), elsewhere);
  pending.freed_in(stream(32), elsewhere);
  begin_capture(captures, pending, stream(32), elsewhere);
  EXPECT_EQ(climb(settings)[1], std::pair(RungName::synchronise, RungOutcome::unsafe));
  EXPECT_EQ(fake.recorded, std::vector{stream(16)});
}

TEST_F(LadderTest, another_threads_own_stream_is_synchronised_when_the_context_is_idle) {
  pending.freed_in(CU_STREAM_PER_THREAD, here);
  fake.polls_until_idle[nullptr] = 3;
  is_there = [] { return !fake.synchronised.empty(); };
  std::thread([this] {
    EXPECT_EQ(climb(settings).back(), std::pair(RungName::synchronise, RungOutcome::served));
  }).join();
  EXPECT_TRUE(fake.recorded.empty());
  EXPECT_EQ(fake.synchronised, std::vector{CU_STREAM_LEGACY});
  EXPECT_EQ(fake.queries, 4);
  is_there = [] { return false; };
  std::thread([this] { climb(settings); }).join();
  EXPECT_EQ(fake.queries, 4) << "the stream has no pending free any more";
  pending.freed_in(CU_STREAM_PER_THREAD, here);
  std::thread([this] { climb(settings); }).join();
  EXPECT_EQ(fake.synchronised.size(), 2u);
}

// The next request looks at the context without waiting again.
TEST_F(LadderTest, a_context_that_is_at_work_for_long_is_waited_for_once) {
  std::thread([this] { pending.freed_in(CU_STREAM_PER_THREAD, here); }).join();
  fake.polls_until_idle[nullptr] = -1;
  Ladder ladder(settings, clock);
  const auto took = [&] {
    const std::uint64_t begun = clock.now_ns();
    EXPECT_EQ(climb(ladder)[1], std::pair(RungName::synchronise, RungOutcome::timed_out));
    return clock.now_ns() - begun;
  };
  EXPECT_GE(took(), settings.sync_timeout_ns);
  EXPECT_LT(took(), settings.sync_timeout_ns / 2);
  EXPECT_TRUE(fake.synchronised.empty());
}

TEST_F(LadderTest, events_from_before_a_capture_are_waited_for_during_it) {
  pending.freed_in(stream(16), here);
  fake.polls_until_idle[stream(16)] = 6;
  clock.while_asleep = [this] {
    if (fake.queries == 3) begin_capture(captures, pending, stream(16), here);
  };
  is_there = [] { return !fake.synchronised.empty(); };
  EXPECT_EQ(climb(settings).back(), std::pair(RungName::synchronise, RungOutcome::served));
}

TEST_F(LadderTest, frees_in_the_threads_own_stream_are_waited_for_without_touching_other_streams) {
  pending.freed_in(CU_STREAM_PER_THREAD, here);
  climb(settings);
  EXPECT_EQ(fake.recorded, std::vector{CU_STREAM_PER_THREAD});
  climb(settings);
  EXPECT_EQ(fake.recorded.size(), 1u) << "the stream has no pending free any more";
  pending.freed_in(CU_STREAM_PER_THREAD, elsewhere);
  climb(settings);
  EXPECT_EQ(fake.recorded.size(), 1u) << "a free in another context needs no event here";
  // The wait includes frees by other threads in their own streams.
  pending.freed_in(CU_STREAM_PER_THREAD, here);
  std::thread([this] { pending.freed_in(CU_STREAM_PER_THREAD, here); }).join();
  climb(settings);
  EXPECT_EQ(fake.recorded, (std::vector{CU_STREAM_PER_THREAD, CU_STREAM_PER_THREAD}));
  EXPECT_EQ(fake.synchronised.back(), CU_STREAM_LEGACY);
}

TEST_F(LadderTest, frees_in_the_threads_own_stream_during_a_wait_are_known_the_next_time) {
  pending.freed_in(CU_STREAM_PER_THREAD, here);
  is_there = [this] {
    if (requests == 2) pending.freed_in(CU_STREAM_PER_THREAD, here);
    return false;
  };
  climb(settings);
  climb(settings);
  EXPECT_EQ(fake.recorded.size(), 2u);
  PendingFrees after_fork(captures);
  const PendingFrees::AwaitedEvents events(after_fork, real, contexts, here, device, clock);
  EXPECT_FALSE(events.any());
}

TEST_F(LadderTest, more_streams_than_the_table_holds_do_no_harm) {
  for (std::uintptr_t i = 1; i < 5000; ++i) pending.freed_in(stream(16 * i), here);
  climb(settings);
  EXPECT_EQ(fake.synchronised.size(), 64u);
  climb(settings);
  EXPECT_EQ(fake.synchronised.size(), 128u);
}

TEST_F(LadderTest, threads_that_free_and_destroy_during_a_wait_lose_nothing_for_good) {
  std::atomic<bool> done{false};
  std::vector<std::thread> others;
  for (std::uintptr_t i = 1; i <= 3; ++i)
    others.emplace_back([&, i] {
      for (std::uintptr_t n = 0; !done.load(); ++n) {
        pending.freed_in(stream(64 * i), here);
        if (n % 7 == 0) pending.stream_ends(stream(64 * i + 16));
        pending.freed_in(stream(64 * i + 16), here);
      }
    });
  for (int i = 0; i < 300; ++i) {
    PendingFrees::AwaitedEvents events(pending, real, contexts, here, device, clock);
    events.synchronise_reached();
  }
  done.store(true);
  for (std::thread& other : others) other.join();
  // Frees from now on are known.
  fake.synchronised.clear();
  for (std::uintptr_t i = 1; i <= 3; ++i) pending.freed_in(stream(64 * i), here);
  climb(settings);
  for (std::uintptr_t i = 1; i <= 3; ++i)
    EXPECT_EQ(std::ranges::count(fake.synchronised, stream(64 * i)), 1) << i;
}

}  // namespace
}  // namespace cuwarden::rescue
