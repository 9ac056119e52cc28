// Reclaimers that are registered and unregistered, also while they run.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/rescue/reclaimers_fixture.hpp"

namespace cuwarden::rescue {
namespace {

TEST_F(ReclaimersTest, an_unregistered_reclaimer_is_not_called_and_leaves_its_slot_to_others) {
  Cache& cache = make();
  std::vector<int> many;
  for (std::size_t i = 0; i < Reclaimers::limit; ++i) EXPECT_NE(add("cache", cache), 0);
  EXPECT_EQ(all.add("one more", "", Cache::reclaim, &cache), 0);
  for (const int id : ids) EXPECT_TRUE(all.remove(id, clock.now_ns()));
  EXPECT_FALSE(all.remove(ids[3], clock.now_ns()));
  EXPECT_FALSE(all.any());
  EXPECT_EQ(climb(with_reclaimers).size(), 3u);
  EXPECT_EQ(cache.calls, 0);
  const int again = add("again", cache);
  EXPECT_NE(again, 0);
  EXPECT_EQ(std::ranges::count(ids, again), 1) << "a number is not given out again";
}

TEST_F(ReclaimersTest, unregistering_waits_for_a_running_call) {
  Cache& cache = make();
  cache.give_back = [this] { return wait_to_be_let_go(); };
  const int id = add("cache", cache);
  run_out_of_time_in(cache);
  climb(with_reclaimers);
  EXPECT_FALSE(all.remove(id, clock.now_ns() + 10'000'000)) << "the reclaimer still runs";
  EXPECT_FALSE(all.remove(id, clock.now_ns() + 10'000'000)) << "and may be waited for again";
  EXPECT_EQ(climb(with_reclaimers).size(), 3u);
  Cache& other = make();
  const int next = add("other", other);
  clock.has_time_passed_waiting = [] { return false; };
  climb(with_reclaimers);
  EXPECT_EQ(other.calls, 1);
  EXPECT_TRUE(all.remove(next, clock.now_ns() + 5'000'000'000));
}

TEST_F(ReclaimersTest, a_reclaimer_may_unregister_itself) {
  Cache& cache = make();
  bool taken_out = false;
  int id = 0;
  cache.give_back = [&] {
    taken_out = all.remove(id, clock.now_ns() + 5'000'000'000);
    return std::size_t{0};
  };
  id = add("cache", cache);
  const std::uint64_t before = clock.now_ns();
  climb(with_reclaimers);
  EXPECT_EQ(clock.now_ns(), before)
      << "a reclaimer that unregisters itself does not wait for itself";
  EXPECT_TRUE(taken_out);
  climb(with_reclaimers);
  EXPECT_EQ(cache.calls, 1);
}

TEST_F(ReclaimersTest, a_forked_child_has_the_reclaimers_and_none_of_their_calls) {
  Cache& cache = make();
  cache.give_back = [this] { return wait_to_be_let_go(); };
  add("cache", cache);
  run_out_of_time_in(cache);
  climb(with_reclaimers);
  const pid_t child = fork();
  if (child == 0) {
    all.forked();
    release();
    clock.has_time_passed_waiting = [] { return false; };
    std::size_t given = 0;
    const auto answer =
        all.call(0, ids[0], {&real, here, 0, 1, clock.now_ns() + 5'000'000'000}, given);
    _exit(answer == Reclaimers::Answer::returned && cache.calls == 2 ? 0 : 1);
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

TEST_F(ReclaimersTest, many_threads_call_reclaimers_that_come_and_go) {
  Cache &stays = make(), &changing = make();
  add("stays", stays);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::size_t given = 0;
      for (int i = 0; i < 200; ++i)
        for (std::size_t index = 0; index < 4; ++index)
          if (Reclaimers::Entry entry; all.entry(index, entry))
            all.call(index, entry.id, {&real, {}, 0, 1, clock.now_ns() + 5'000'000'000}, given);
    });
  std::thread changes([&] {
    while (!done) {
      const int id = all.add("comes and goes", "", Cache::reclaim, &changing);
      EXPECT_TRUE(all.remove(id, clock.now_ns() + 5'000'000'000));
    }
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  changes.join();
  EXPECT_GT(stays.calls, 0);
}

}  // namespace
}  // namespace cuwarden::rescue
