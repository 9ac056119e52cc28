// Reclaimers: when they are called, and whether the request is served.
#include <pthread.h>

#include <stdexcept>

#include "tests/comes_about.hpp"
#include "tests/unit/rescue/reclaimers_fixture.hpp"

namespace cuwarden::rescue {
namespace {

TEST_F(ReclaimersTest, memory_that_a_cache_gives_back_serves_the_request) {
  Cache& cache = make();
  add("cache", cache);
  is_there = [&] { return cache.calls == 1; };
  EXPECT_EQ(climb(with_reclaimers), (Rungs{{RungName::retry, RungOutcome::no_memory},
                                           {RungName::synchronise, RungOutcome::nothing_to_do},
                                           {RungName::trim, RungOutcome::nothing_to_do},
                                           {RungName::reclaim, RungOutcome::served}}));
  EXPECT_TRUE(served);
  EXPECT_EQ(named, std::vector<std::string>{"cache"});
  EXPECT_EQ(cache.device, 0);
  EXPECT_EQ(cache.bytes, 5000u);
  EXPECT_NE(cache.thread, std::this_thread::get_id());
  EXPECT_TRUE(cache.was_reclaiming);
  EXPECT_FALSE(is_reclaiming());
  EXPECT_EQ(fake.made_current, reinterpret_cast<CUcontext>(here.value));
  EXPECT_EQ(cache.capture_mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_TRUE(failures.all.empty());
}

TEST_F(ReclaimersTest, reclaimers_are_called_in_order_until_one_has_helped) {
  Cache &first = make(), &second = make(), &third = make();
  add("first", first);
  add("second", second);
  add("third", third);
  is_there = [&] { return second.calls == 1; };
  EXPECT_EQ(climb(with_reclaimers).size(), 5u);
  EXPECT_EQ(named, (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(third.calls, 0);
}

TEST_F(ReclaimersTest, a_reclaimer_that_is_registered_during_the_rescue_is_called) {
  Cache& cache = make();
  is_there = [&] {
    if (ids.empty()) add("late", cache);
    return cache.calls == 1;
  };
  climb(with_reclaimers);
  EXPECT_TRUE(served);
  EXPECT_EQ(named, std::vector<std::string>{"late"});
}

TEST_F(ReclaimersTest, a_request_for_host_memory_calls_reclaimers_with_device_minus_one) {
  Cache& cache = make();
  add("cache", cache);
  climb(with_reclaimers, true, false);
  EXPECT_EQ(cache.device, -1);
}

TEST_F(ReclaimersTest,
       no_reclaimer_is_called_for_a_thread_that_retries_itself_or_may_hold_its_lock) {
  Cache &cache = make(), &other = make();
  add("cache", cache, "libcache.so,/libc.so");  // each stack begins in libc
  add("other", other, "libother.so");
  climb(with_reclaimers, false);
  EXPECT_EQ(cache.calls + other.calls, 0);
  const Rungs rungs = climb(with_reclaimers);
  EXPECT_EQ(rungs[3], std::pair(RungName::reclaim, RungOutcome::unsafe));
  EXPECT_EQ(rungs[4], std::pair(RungName::reclaim, RungOutcome::no_memory));
  EXPECT_EQ(cache.calls, 0);
  EXPECT_EQ(other.calls, 1);
}

TEST_F(ReclaimersTest, a_reclaimer_that_gives_nothing_back_is_reported_once) {
  Cache& cache = make();
  cache.give_back = [] { return std::size_t{0}; };
  add("cache", cache);
  EXPECT_EQ(climb(with_reclaimers).back(),
            std::pair(RungName::reclaim, RungOutcome::nothing_to_do));
  climb(with_reclaimers);
  EXPECT_EQ(failures.all, (Failures{{"cache", Failure::gave_nothing}}));
  // A reclaimer may return 0 although it gave memory back.
  is_there = [&] { return cache.calls == 3; };
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(RungName::reclaim, RungOutcome::served));
}

TEST_F(ReclaimersTest, a_reclaimer_that_throws_ends_its_own_thread_only) {
  Cache &cache = make(), &next = make();
  cache.give_back = []() -> std::size_t { throw std::runtime_error("no"); };
  add("cache", cache);
  add("next", next);
  is_there = [&] { return next.calls == 1; };
  const Rungs rungs = climb(with_reclaimers);
  EXPECT_EQ(rungs[3], std::pair(RungName::reclaim, RungOutcome::failed));
  EXPECT_EQ(rungs[4], std::pair(RungName::reclaim, RungOutcome::served));
  EXPECT_EQ(failures.all, (Failures{{"cache", Failure::threw}}));
}

TEST_F(ReclaimersTest, the_ledger_has_the_end_of_a_turn_before_its_failure_is_told) {
  Cache& cache = make();
  cache.give_back = []() -> std::size_t { throw std::runtime_error("no"); };
  add("cache", cache);
  begin_incident();
  failures.while_written = [this] { EXPECT_EQ(last_rung().outcome, RungOutcome::failed); };
  climb(with_reclaimers);
  EXPECT_EQ(failures.all.size(), 1u);
}

TEST_F(ReclaimersTest, a_reclaimer_that_ends_its_thread_counts_as_one_that_threw) {
  Cache& cache = make();
  cache.give_back = []() -> std::size_t { pthread_exit(nullptr); };
  add("cache", cache);
  // std::thread would call std::terminate for it.
  struct PosixThreads final : QuietProcess {
    bool start_thread(void* (*work)(void*), void* argument) noexcept override {
      pthread_t thread{};
      return pthread_create(&thread, nullptr, work, argument) == 0 && pthread_detach(thread) == 0;
    }
  } threads;
  Reclaimers posix{threads, clock};
  posix.add("cache", "", Cache::reclaim, &cache);
  reclaimers = &posix;
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(RungName::reclaim, RungOutcome::failed));
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(RungName::reclaim, RungOutcome::failed));
  EXPECT_EQ(cache.calls, 2);
}

TEST_F(ReclaimersTest,
       a_reclaimer_that_hangs_is_waited_for_up_to_the_limit_and_called_once_at_a_time) {
  Cache& cache = make();
  cache.give_back = [this] { return wait_to_be_let_go(); };
  add("cache", cache);
  run_out_of_time_in(cache);
  const std::uint64_t before = clock.now_ns();
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(RungName::reclaim, RungOutcome::timed_out));
  EXPECT_EQ(clock.now_ns() - before, with_reclaimers.sync_timeout_ns);
  const std::uint64_t again = clock.now_ns();
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(RungName::reclaim, RungOutcome::timed_out));
  EXPECT_EQ(clock.now_ns(), again) << "the next request does not wait for the same call again";
  EXPECT_EQ(cache.calls, 1);
  EXPECT_EQ(failures.all, (Failures{{"cache", Failure::does_not_return}}));
  // Once its late call has returned, the reclaimer is called again like any other.
  release();
  process.wait_until_none_runs();
  clock.has_time_passed_waiting = [] { return false; };
  cache.give_back = [] { return std::size_t{1}; };
  is_there = [&, calls = cache.calls.load()] { return cache.calls > calls; };
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(RungName::reclaim, RungOutcome::served));
}

TEST_F(ReclaimersTest, a_request_during_a_call_waits_for_the_call_and_makes_its_own_if_needed) {
  Cache& cache = make();
  cache.give_back = [this, &cache] { return cache.calls == 1 ? wait_to_be_let_go() : 1; };
  add("cache", cache);
  with_reclaimers.sync_timeout_ns = 20'000'000'000;
  std::size_t given = 0;
  release_in_first_wait();
  std::thread other([&] {
    all.call(0, 1, {&real, here, 1, 1, clock.now_ns() + 20'000'000'000}, given);
  });
  ASSERT_TRUE(comes_about([&] { return cache.calls != 0; }));
  EXPECT_EQ(cache.device, 1);
  is_there = [&] { return cache.calls == 2; };
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(RungName::reclaim, RungOutcome::served));
  EXPECT_EQ(cache.device, 0);
  other.join();
}

TEST_F(ReclaimersTest, a_request_makes_no_call_if_another_requests_call_gave_back_enough) {
  Cache& cache = make();
  cache.give_back = [this] { return wait_to_be_let_go(); };
  add("cache", cache);
  with_reclaimers.sync_timeout_ns = 20'000'000'000;
  std::size_t given = 0;
  release_in_first_wait();
  std::thread other([&] {
    all.call(0, 1, {&real, here, 0, 1, clock.now_ns() + 20'000'000'000}, given);
  });
  ASSERT_TRUE(comes_about([&] { return cache.calls != 0; }));
  is_there = [this] { return let_go.load(); };
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(RungName::reclaim, RungOutcome::served));
  other.join();
  EXPECT_EQ(cache.calls, 1);
}

TEST_F(ReclaimersTest, all_reclaimers_together_have_one_time_limit) {
  Cache &cache = make(), &other = make();
  cache.give_back = other.give_back = [this] { return wait_to_be_let_go(); };
  add("cache", cache);
  add("other", other);
  run_out_of_time_in(cache);
  const std::uint64_t before = clock.now_ns();
  climb(with_reclaimers);
  EXPECT_EQ(clock.now_ns() - before, with_reclaimers.sync_timeout_ns);
}

TEST_F(ReclaimersTest, without_time_no_reclaimer_is_called) {
  Cache& cache = make();
  add("cache", cache);
  with_reclaimers.sync_timeout_ns = 0;
  EXPECT_EQ(climb(with_reclaimers).size(), 3u);
  EXPECT_EQ(cache.calls, 0);
}

TEST_F(ReclaimersTest, a_thrown_exception_is_destroyed_before_the_call_counts_as_returned) {
  struct Exception {
    Exception(std::atomic<bool>& flag, const std::atomic<bool>& may_end)
        : is_there(flag), may_go(may_end) {
      is_there = true;
    }
    Exception(const Exception&) = delete;
    ~Exception() {
      wait_until("release() is called", [this] { return may_go.load(); });
      is_there = false;
    }
    std::atomic<bool>& is_there;
    const std::atomic<bool>& may_go;
  };
  std::atomic<bool> is_exception_there{false};
  Cache& cache = make();
  cache.give_back = [&]() -> std::size_t { throw Exception(is_exception_there, let_go); };
  const int id = add("cache", cache);
  run_out_of_time_in(cache);
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(RungName::reclaim, RungOutcome::timed_out));
  release_in_first_wait();
  EXPECT_TRUE(all.remove(id, clock.now_ns() + 5'000'000'000));
  EXPECT_FALSE(is_exception_there);
}

TEST_F(ReclaimersTest, no_reclaimer_is_called_if_no_thread_can_be_started) {
  process.threads_can_start = false;
  Cache& cache = make();
  add("cache", cache);
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(RungName::reclaim, RungOutcome::failed));
  EXPECT_EQ(cache.calls, 0);
  EXPECT_EQ(failures.all, (Failures{{"cache", Failure::no_thread}}));
  process.threads_can_start = true;
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(RungName::reclaim, RungOutcome::no_memory));
}

class ReclaimersAreCalledAgain : public ReclaimersTest {};

TEST_F(ReclaimersAreCalledAgain, if_a_call_was_not_safe_before) {
  Cache& cache = make();
  add("cache", cache, "python:gil");
  Ladder ladder(with_reclaimers, clock, reclaimers);
  const RescueConditions now{.live_bytes = 1000, .noted = 5};
  const auto climb_once = [&] { climb(ladder, now); };
  process.is_lock_held = true;
  climb_once();
  EXPECT_TRUE(is_worth_climbing(ladder, now)) << "a reclaimer may be safe in another thread";
  process.is_lock_held = false;
  climb_once();
  EXPECT_EQ(cache.calls, 1);
  EXPECT_FALSE(is_worth_climbing(ladder, now));
}

TEST_F(ReclaimersAreCalledAgain, once_another_reclaimer_is_registered) {
  Cache &first = make(), &second = make();
  add("first", first);
  Ladder ladder(with_reclaimers, clock, reclaimers);
  const RescueConditions now{};
  climb(ladder);
  EXPECT_FALSE(is_worth_climbing(ladder, now));
  add("second", second);
  EXPECT_TRUE(is_worth_climbing(ladder, now));
}

TEST_F(ReclaimersAreCalledAgain, once_the_allocator_has_retried_by_itself) {
  Cache& cache = make();
  add("cache", cache);
  Ladder ladder(with_reclaimers, clock, reclaimers);
  RescueConditions first{.live_bytes = 1000, .noted = 5, .is_last_resort_due = false};
  const auto climb_once = [&](const RescueConditions& now) { climb(ladder, now); };
  climb_once(first);
  EXPECT_EQ(cache.calls, 0);
  EXPECT_FALSE(is_worth_climbing(ladder, first));
  RescueConditions second = first;
  second.is_last_resort_due = true;
  EXPECT_TRUE(is_worth_climbing(ladder, second));
  climb_once(second);
  EXPECT_EQ(cache.calls, 1);
  EXPECT_FALSE(is_worth_climbing(ladder, second));
}

}  // namespace
}  // namespace cuwarden::rescue
