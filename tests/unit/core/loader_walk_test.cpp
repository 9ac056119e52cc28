#include "runtime_hooks/core/loader_walk.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/comes_about.hpp"
#include "tests/unit/manual_clock.hpp"

namespace cuwarden {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;

// A walk of another thread, which lasts until it is told to end.
class LongWalk {
 public:
  explicit LongWalk(LoaderWalks& walks) {
    thread_ = std::thread([this, &walks] {
      walks.walk(
          [](dl_phdr_info*, std::size_t, void* argument) {
            auto& self = *static_cast<LongWalk*>(argument);
            self.has_begun_ = true;
            EXPECT_TRUE(comes_about([&] { return self.may_end_.load(); }));
            self.is_ending_ = true;
            return 1;
          },
          this);
    });
    EXPECT_TRUE(comes_about([&] { return has_begun_.load(); }));
  }
  ~LongWalk() { end(); }
  LongWalk(const LongWalk&) = delete;
  LongWalk& operator=(const LongWalk&) = delete;

  void end() {
    may_end_ = true;
    if (thread_.joinable()) thread_.join();
  }
  bool is_ending() const { return is_ending_; }

 private:
  std::atomic<bool> has_begun_{false}, may_end_{false}, is_ending_{false};
  std::thread thread_;
};

int count_one(dl_phdr_info*, std::size_t, void* count) {
  ++*static_cast<int*>(count);
  return 1;
}

TEST(LoaderWalks, a_fork_waits_for_a_walk_of_another_thread) {
  ManualClock clock;
  LoaderWalks walks(clock);
  LongWalk walk(walks);
  int waits = 0;
  clock.has_time_passed_waiting = [&] {
    if (++waits == 3) walk.end();
    return true;
  };
  walks.before_fork();
  EXPECT_EQ(waits, 3);
  EXPECT_TRUE(walk.is_ending());
  walks.after_fork();
}

TEST(LoaderWalks, a_walk_waits_for_a_fork_of_another_thread) {
  ManualClock clock;
  LoaderWalks walks(clock);
  std::atomic<bool> waits{false}, may_go_on{false};
  clock.has_time_passed_waiting = [&] {
    waits = true;
    EXPECT_TRUE(comes_about([&] { return may_go_on.load(); }));
    return true;
  };
  walks.before_fork();
  std::atomic<int> count{0};
  std::thread other([&] {
    int own = 0;
    walks.walk(count_one, &own);
    count = own;
  });
  EXPECT_TRUE(comes_about([&] { return waits || count != 0; }));
  EXPECT_EQ(count, 0);
  walks.after_fork();
  may_go_on = true;
  other.join();
  EXPECT_EQ(count, 1);
}

// The walk may be left by a jump, so that it never ends.
TEST(LoaderWalks, only_the_first_fork_waits_ten_seconds_for_a_walk_that_does_not_end) {
  ManualClock clock;
  LoaderWalks walks(clock);
  LongWalk walk(walks);
  int waits = 0;
  clock.has_time_passed_waiting = [&] {
    ++waits;
    clock.advance(second_ns);
    return true;
  };
  walks.before_fork();
  EXPECT_EQ(waits, 10);
  walks.after_fork();
  walks.before_fork();
  EXPECT_EQ(waits, 10);
  walks.after_fork();
}

TEST(LoaderWalks, a_walk_waits_ten_seconds_for_a_fork_that_does_not_end) {
  ManualClock clock;
  LoaderWalks walks(clock);
  std::atomic<int> waits{0};
  clock.has_time_passed_waiting = [&] {
    ++waits;
    clock.advance(second_ns);
    return true;
  };
  walks.before_fork();
  int count = 0;
  std::thread([&] { walks.walk(count_one, &count); }).join();
  EXPECT_EQ(waits, 10);
  EXPECT_EQ(count, 1);
  walks.after_fork();
}

// The inner walk would wait for the fork, which waits for the outer walk.
TEST(LoaderWalks, a_walk_inside_a_walk_does_not_wait_for_a_fork) {
  ManualClock clock;
  LoaderWalks walks(clock);
  struct Task {
    LoaderWalks& walks;
    std::thread forks{};
    std::atomic<bool> fork_waits{false}, is_inner_done{false};
    int inner = 0;
  } task{walks};
  const std::thread::id walking = std::this_thread::get_id();
  bool walk_waits = false;
  clock.has_time_passed_waiting = [&] {
    if (std::this_thread::get_id() == walking) {
      walk_waits = true;
    } else {
      task.fork_waits = true;
      EXPECT_TRUE(comes_about([&] { return task.is_inner_done.load(); }));
    }
    return true;
  };
  walks.walk(
      [](dl_phdr_info*, std::size_t, void* argument) {
        auto& own = *static_cast<Task*>(argument);
        own.forks = std::thread([&] {
          own.walks.before_fork();
          own.walks.after_fork();
        });
        EXPECT_TRUE(comes_about([&] { return own.fork_waits.load(); }));
        own.walks.walk(count_one, &own.inner);
        own.is_inner_done = true;
        return 1;
      },
      &task);
  task.forks.join();
  EXPECT_EQ(task.inner, 1);
  EXPECT_FALSE(walk_waits);
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
