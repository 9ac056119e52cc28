#include "runtime_hooks/core/loader_walk.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace cuwarden {
namespace {

using namespace std::chrono_literals;

// A walk that lasts until it is told to end.
class LongWalk {
 public:
  explicit LongWalk(LoaderWalks& walks) {
    thread_ = std::thread([this, &walks] {
      walks.walk(
          [](dl_phdr_info*, std::size_t, void* argument) {
            auto& self = *static_cast<LongWalk*>(argument);
            self.has_begun_ = true;
            while (!self.may_end_) std::this_thread::sleep_for(1ms);
            return 1;
          },
          this);
    });
    while (!has_begun_) std::this_thread::sleep_for(1ms);
  }
  void end() {
    may_end_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> has_begun_{false}, may_end_{false};
  std::thread thread_;
};

int count_one(dl_phdr_info*, std::size_t, void* count) {
  ++*static_cast<int*>(count);
  return 1;
}

TEST(LoaderWalks, a_fork_waits_for_a_walk_of_another_thread) {
  LoaderWalks walks;
  LongWalk walk(walks);
  std::atomic<bool> may_fork{false};
  std::thread forks([&] {
    walks.before_fork();
    may_fork = true;
    walks.after_fork();
  });
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(may_fork);
  walk.end();
  forks.join();
  EXPECT_TRUE(may_fork);
}

TEST(LoaderWalks, a_walk_waits_for_a_fork_of_another_thread) {
  LoaderWalks walks;
  walks.before_fork();
  std::atomic<int> count{0};
  std::thread other([&] {
    int own = 0;
    walks.walk(count_one, &own);
    count = own;
  });
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(count, 0);
  walks.after_fork();
  other.join();
  EXPECT_EQ(count, 1);
}

// The inner walk would wait for the fork, which waits for the outer walk.
TEST(LoaderWalks, a_walk_inside_a_walk_does_not_wait_for_a_fork) {
  LoaderWalks walks;
  std::thread forks;
  struct Task {
    LoaderWalks& walks;
    std::thread& forks;
    std::chrono::nanoseconds inner{};
  } task{walks, forks};
  walks.walk(
      [](dl_phdr_info*, std::size_t, void* argument) {
        auto& own = *static_cast<Task*>(argument);
        own.forks = std::thread([&] {
          own.walks.before_fork();
          own.walks.after_fork();
        });
        std::this_thread::sleep_for(50ms);
        int count = 0;
        const auto begin = std::chrono::steady_clock::now();
        own.walks.walk(count_one, &count);
        own.inner = std::chrono::steady_clock::now() - begin;
        return 1;
      },
      &task);
  forks.join();
  EXPECT_LT(task.inner, 5s);
}

TEST(LoaderWalks, the_forking_thread_and_its_child_may_walk) {
  LoaderWalks walks;
  int count = 0;
  walks.before_fork();
  walks.walk(count_one, &count);
  walks.in_forked_child();
  walks.walk(count_one, &count);
  EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace cuwarden
