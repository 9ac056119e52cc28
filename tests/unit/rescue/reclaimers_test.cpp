// Functions that give memory back: when they are called and how, and what becomes of the request.
#include "runtime_hooks/rescue/reclaimers.hpp"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <stdexcept>
#include <thread>

#include "tests/unit/rescue/fake_ladder.hpp"

namespace cuwarden::rescue {
namespace {

using Trouble = Reclaimers::Trouble;
using std::chrono::milliseconds;

bool threads_can_start = true;
bool start(void* (*work)(void*), void* argument) noexcept {
  if (!threads_can_start) return false;
  std::thread([=] { work(argument); }).detach();
  return true;
}

// What a reclaimer does, and what it was called with.
struct Cache {
  std::function<std::size_t()> give_back = [] { return std::size_t{4096}; };
  std::atomic<int> calls{0};
  int device = -2;
  std::size_t bytes = 0;
  bool was_reclaiming = false;
  std::thread::id thread;
  static std::size_t reclaim(int device, std::size_t bytes, void* argument) {
    Cache& cache = *static_cast<Cache*>(argument);
    cache.device = device;
    cache.bytes = bytes;
    cache.was_reclaiming = is_reclaiming();
    cache.thread = std::this_thread::get_id();
    ++cache.calls;
    return cache.give_back();
  }
};

std::vector<std::pair<std::string, Trouble>> troubles;

class ReclaimersTest : public LadderTest {
 protected:
  ReclaimersTest() {
    troubles.clear();
    threads_can_start = true;
  }
  ~ReclaimersTest() override {
    // A call that is left behind ends with the test.
    let_go = true;
    for (const int id : ids) all.remove(id, now_ns() + 5'000'000'000);
  }
  Cache& make() { return caches.emplace_back(); }
  int add(std::string_view name, Cache& cache, std::string_view modules = "") {
    ids.push_back(all.add(name, modules, Cache::reclaim, &cache));
    return ids.back();
  }
  std::size_t wait_to_be_let_go() {
    while (!let_go) std::this_thread::sleep_for(milliseconds(1));
    return 0;
  }

  std::deque<Cache> caches;
  Reclaimers all{start};
  Settings with_reclaimers{.enabled = true,
                           .sync_timeout_ns = 100'000'000,
                           .reclaimers = &all,
                           .trouble = [](std::string_view name, Trouble trouble) noexcept {
                             troubles.emplace_back(name, trouble);
                           }};
  std::atomic<bool> let_go{false};
  std::vector<int> ids;
};

TEST_F(ReclaimersTest, what_a_cache_gives_back_serves_the_request) {
  Cache& cache = make();
  add("cache", cache);
  is_there = [&] { return cache.calls == 1; };
  EXPECT_EQ(climb(with_reclaimers), (Rungs{{Rung::retry, RungOutcome::no_memory},
                                           {Rung::synchronise, RungOutcome::nothing_to_do},
                                           {Rung::trim, RungOutcome::nothing_to_do},
                                           {Rung::reclaim, RungOutcome::served}}));
  EXPECT_TRUE(served);
  EXPECT_EQ(named, std::vector<std::string>{"cache"});
  EXPECT_EQ(cache.device, 0);
  EXPECT_EQ(cache.bytes, 5000u);
  EXPECT_NE(cache.thread, std::this_thread::get_id());
  EXPECT_TRUE(cache.was_reclaiming);
  EXPECT_FALSE(is_reclaiming());
  EXPECT_EQ(fake.made_current, reinterpret_cast<CUcontext>(here.value));
  EXPECT_EQ(fake.capture_mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_TRUE(troubles.empty());
}

TEST_F(ReclaimersTest, they_are_called_in_their_order_until_one_has_helped) {
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

TEST_F(ReclaimersTest, the_hosts_memory_is_device_minus_one) {
  Cache& cache = make();
  add("cache", cache);
  climb(with_reclaimers, true, false);
  EXPECT_EQ(cache.device, -1);
}

TEST_F(ReclaimersTest, none_is_called_for_who_asks_again_nor_where_its_lock_may_be_held) {
  Cache &cache = make(), &other = make();
  add("cache", cache, "libcache.so");
  add("other", other, "libother.so");
  climb(with_reclaimers, false);
  EXPECT_EQ(cache.calls + other.calls, 0);
  unsafe_modules = "libcache.so";
  const Rungs rungs = climb(with_reclaimers);
  EXPECT_EQ(rungs[3], std::pair(Rung::reclaim, RungOutcome::unsafe));
  EXPECT_EQ(rungs[4], std::pair(Rung::reclaim, RungOutcome::no_memory));
  EXPECT_EQ(cache.calls, 0);
  EXPECT_EQ(other.calls, 1);
}

TEST_F(ReclaimersTest, one_that_gives_nothing_back_is_told_of_once) {
  Cache& cache = make();
  cache.give_back = [] { return std::size_t{0}; };
  add("cache", cache);
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(Rung::reclaim, RungOutcome::nothing_to_do));
  climb(with_reclaimers);
  EXPECT_EQ(troubles,
            (std::vector<std::pair<std::string, Trouble>>{{"cache", Trouble::gave_nothing}}));
  // It may not know what it gave.
  is_there = [&] { return cache.calls == 3; };
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(Rung::reclaim, RungOutcome::served));
}

TEST_F(ReclaimersTest, one_that_throws_ends_its_own_thread_only) {
  Cache &cache = make(), &next = make();
  cache.give_back = []() -> std::size_t { throw std::runtime_error("no"); };
  add("cache", cache);
  add("next", next);
  is_there = [&] { return next.calls == 1; };
  const Rungs rungs = climb(with_reclaimers);
  EXPECT_EQ(rungs[3], std::pair(Rung::reclaim, RungOutcome::failed));
  EXPECT_EQ(rungs[4], std::pair(Rung::reclaim, RungOutcome::served));
  EXPECT_EQ(troubles, (std::vector<std::pair<std::string, Trouble>>{{"cache", Trouble::threw}}));
}

TEST_F(ReclaimersTest, one_that_ends_its_thread_is_one_that_threw) {
  Cache& cache = make();
  cache.give_back = []() -> std::size_t { pthread_exit(nullptr); };
  add("cache", cache);
  // std::thread would call std::terminate for it.
  Reclaimers posix{[](void* (*work)(void*), void* argument) noexcept {
    pthread_t thread{};
    return pthread_create(&thread, nullptr, work, argument) == 0 && pthread_detach(thread) == 0;
  }};
  posix.add("cache", "", Cache::reclaim, &cache);
  with_reclaimers.reclaimers = &posix;
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(Rung::reclaim, RungOutcome::failed));
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(Rung::reclaim, RungOutcome::failed));
  EXPECT_EQ(cache.calls, 2);
}

TEST_F(ReclaimersTest,
       one_that_hangs_is_waited_for_as_long_as_is_allowed_and_called_once_at_a_time) {
  Cache& cache = make();
  cache.give_back = [this] { return wait_to_be_let_go(); };
  add("cache", cache);
  const std::uint64_t before = now_ns();
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(Rung::reclaim, RungOutcome::timed_out));
  EXPECT_GE(now_ns() - before, 100'000'000u);
  EXPECT_LT(now_ns() - before, 5'000'000'000u);
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(Rung::reclaim, RungOutcome::timed_out));
  EXPECT_EQ(cache.calls, 1);
  EXPECT_EQ(troubles,
            (std::vector<std::pair<std::string, Trouble>>{{"cache", Trouble::does_not_return}}));
  // When it has returned after all it is as good as any.
  let_go = true;
  while (climb(with_reclaimers).back().second == RungOutcome::timed_out) {
  }
  cache.give_back = [] { return std::size_t{1}; };
  is_there = [&, calls = cache.calls.load()] { return cache.calls > calls; };
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(Rung::reclaim, RungOutcome::served));
}

TEST_F(ReclaimersTest, who_comes_while_one_runs_shares_its_call) {
  Cache& cache = make();
  cache.give_back = [this] { return wait_to_be_let_go(); };
  add("cache", cache);
  with_reclaimers.sync_timeout_ns = 20'000'000'000;
  std::size_t given = 0;
  std::thread other([&] { all.call(0, 1, {&real, here, 0, 1}, now_ns() + 20'000'000'000, given); });
  while (cache.calls == 0) std::this_thread::yield();
  std::thread opener([this] {
    std::this_thread::sleep_for(milliseconds(20));
    let_go = true;
  });
  is_there = [this] { return let_go.load(); };
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(Rung::reclaim, RungOutcome::served));
  other.join();
  opener.join();
  EXPECT_EQ(cache.calls, 1);
}

TEST_F(ReclaimersTest, where_no_thread_can_be_started_nothing_is_called) {
  threads_can_start = false;
  Cache& cache = make();
  add("cache", cache);
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(Rung::reclaim, RungOutcome::failed));
  EXPECT_EQ(cache.calls, 0);
  EXPECT_EQ(troubles,
            (std::vector<std::pair<std::string, Trouble>>{{"cache", Trouble::no_thread}}));
  threads_can_start = true;
  EXPECT_EQ(climb(with_reclaimers).back(), std::pair(Rung::reclaim, RungOutcome::no_memory));
}

TEST_F(ReclaimersTest, what_is_taken_out_is_not_called_and_leaves_its_place_to_others) {
  Cache& cache = make();
  std::vector<int> many;
  for (std::size_t i = 0; i < Reclaimers::limit; ++i) EXPECT_NE(add("cache", cache), 0);
  EXPECT_EQ(all.add("one more", "", Cache::reclaim, &cache), 0);
  for (const int id : ids) EXPECT_TRUE(all.remove(id, now_ns()));
  EXPECT_FALSE(all.remove(ids[3], now_ns()));
  EXPECT_FALSE(all.any());
  EXPECT_EQ(climb(with_reclaimers).size(), 3u);
  EXPECT_EQ(cache.calls, 0);
  const int again = add("again", cache);
  EXPECT_NE(again, 0);
  EXPECT_EQ(std::ranges::count(ids, again), 1) << "an old number is not somebody else's";
}

TEST_F(ReclaimersTest, a_running_one_is_waited_for_when_it_is_taken_out) {
  Cache& cache = make();
  cache.give_back = [this] { return wait_to_be_let_go(); };
  const int id = add("cache", cache);
  climb(with_reclaimers);
  EXPECT_FALSE(all.remove(id, now_ns() + 10'000'000)) << "it runs still";
  EXPECT_EQ(climb(with_reclaimers).size(), 3u);
  Cache& other = make();
  const int next = add("other", other);
  std::thread opener([this] {
    std::this_thread::sleep_for(milliseconds(20));
    let_go = true;
  });
  climb(with_reclaimers);
  EXPECT_EQ(other.calls, 1);
  EXPECT_TRUE(all.remove(next, now_ns() + 5'000'000'000));
  const bool had_ended = !all.remove(id, now_ns() + 5'000'000'000);
  EXPECT_TRUE(had_ended || let_go) << "it may be waited for again";
  opener.join();
}

TEST_F(ReclaimersTest, one_may_take_itself_out) {
  Cache& cache = make();
  bool taken_out = false;
  int id = 0;
  cache.give_back = [&] {
    taken_out = all.remove(id, now_ns() + 5'000'000'000);
    return std::size_t{0};
  };
  id = add("cache", cache);
  const std::uint64_t before = now_ns();
  with_reclaimers.sync_timeout_ns = 4'000'000'000;
  climb(with_reclaimers);
  EXPECT_LT(now_ns() - before, 3'000'000'000u);
  EXPECT_TRUE(taken_out);
  climb(with_reclaimers);
  EXPECT_EQ(cache.calls, 1);
}

TEST_F(ReclaimersTest, a_forked_child_has_them_and_none_of_the_calls) {
  Cache& cache = make();
  cache.give_back = [this] { return wait_to_be_let_go(); };
  add("cache", cache);
  climb(with_reclaimers);
  const pid_t child = fork();
  if (child == 0) {
    all.forked();
    let_go = true;
    is_there = [&] { return cache.calls == 2; };
    _exit(climb(with_reclaimers).back() == std::pair(Rung::reclaim, RungOutcome::served) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(ReclaimersTest, texts_that_do_not_fit_are_refused) {
  Cache& cache = make();
  EXPECT_EQ(all.add(std::string(64, 'n'), "", Cache::reclaim, &cache), 0);
  EXPECT_EQ(all.add("n", std::string(256, 'm'), Cache::reclaim, &cache), 0);
  EXPECT_NE(add(std::string(63, 'n'), cache, std::string(255, 'm')), 0);
  Reclaimers::Entry entry;
  ASSERT_TRUE(all.entry(0, entry));
  EXPECT_EQ(entry.name, std::string(63, 'n'));
  EXPECT_EQ(entry.modules, std::string(255, 'm'));
}

class ReclaimersClimbedAgain : public ReclaimersTest {};

TEST_F(ReclaimersClimbedAgain, once_who_asks_again_has_done_so) {
  Cache& cache = make();
  add("cache", cache);
  Ladder ladder(with_reclaimers);
  const auto request = [&] { return refusal; };
  const auto trim = [] { return false; };
  const auto is_unsafe = [](std::string_view) { return false; };
  Situation first{
      .device = 1, .live_bytes = 1000, .noted = 5, .bytes = 100, .is_last_resort_due = false};
  const auto climb_once = [&](const Situation& now) {
    return ladder.climb({real, pending, here, 0, 100, request, trim, is_unsafe}, now,
                        [](const Climbed&) {});
  };
  climb_once(first);
  EXPECT_EQ(cache.calls, 0);
  EXPECT_FALSE(ladder.is_worth_climbing(first));
  Situation second = first;
  second.is_last_resort_due = true;
  EXPECT_TRUE(ladder.is_worth_climbing(second));
  climb_once(second);
  EXPECT_EQ(cache.calls, 1);
  EXPECT_FALSE(ladder.is_worth_climbing(second));
}

// Many threads, with reclaimers that come and go.
TEST_F(ReclaimersTest, under_fire) {
  Cache &stays = make(), &changing = make();
  add("stays", stays);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::size_t given = 0;
      for (int i = 0; i < 200; ++i)
        for (std::size_t place = 0; place < 4; ++place)
          if (Reclaimers::Entry entry; all.entry(place, entry))
            all.call(place, entry.id, {&real, {}, 0, 1}, now_ns() + 5'000'000'000, given);
    });
  std::thread changes([&] {
    while (!done) {
      const int id = all.add("comes and goes", "", Cache::reclaim, &changing);
      EXPECT_TRUE(all.remove(id, now_ns() + 5'000'000'000));
    }
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  changes.join();
  EXPECT_GT(stays.calls, 0);
}

}  // namespace
}  // namespace cuwarden::rescue
