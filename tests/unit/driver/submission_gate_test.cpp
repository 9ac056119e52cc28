// The gate, passed by many threads while it is closed and opened.
#include "runtime_hooks/driver/submission_gate.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

namespace cuwarden::driver {
namespace {

using namespace std::chrono_literals;

std::uint64_t in(std::chrono::nanoseconds time) {
  return static_cast<std::uint64_t>(
      (std::chrono::steady_clock::now().time_since_epoch() + time).count());
}

class SubmissionGateTest : public testing::Test {
 protected:
  SubmissionGateTest() { EXPECT_TRUE(submission_gate.arm()); }
};

// As of memory that is moved: nobody sees it half done.
TEST_F(SubmissionGateTest, nobody_submits_while_it_is_closed) {
  std::atomic<bool> ends{false}, is_moving{false};
  std::atomic<std::uint64_t> passed{0}, wrong{0};
  std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i)
    all.emplace_back([&] {
      while (!ends) {
        const Submission outer;
        if (is_moving.load(std::memory_order_relaxed)) ++wrong;
        {
          const Submission within;
          if (is_moving.load(std::memory_order_relaxed)) ++wrong;
        }
        if (is_moving.load(std::memory_order_relaxed)) ++wrong;
        passed.fetch_add(1, std::memory_order_relaxed);
      }
    });
  int closed = 0;
  std::uint64_t since_last = 0;
  for (int i = 0; i < 300; ++i) {
    if (submission_gate.close(in(1s))) {
      ++closed;
      is_moving.store(true, std::memory_order_relaxed);
      {
        const Submission own;  // passes
        std::this_thread::sleep_for(100us);
      }
      is_moving.store(false, std::memory_order_relaxed);
      submission_gate.open();
    }
    since_last = passed;
    std::this_thread::sleep_for(100us);
  }
  for (int i = 0; i < 1000 && passed == since_last; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_GT(passed, since_last) << "it is open again";
  ends = true;
  for (std::thread& one : all) one.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(closed, 290);
}

TEST_F(SubmissionGateTest, who_does_not_come_back_keeps_it_open) {
  std::atomic<bool> is_in{false}, ends{false};
  std::thread stays([&] {
    const Submission long_one;
    is_in = true;
    while (!ends) std::this_thread::sleep_for(1ms);
  });
  while (!is_in) std::this_thread::yield();
  EXPECT_FALSE(submission_gate.close(in(20ms)));
  std::thread([] { const Submission passes; }).join();
  ends = true;
  stays.join();
  EXPECT_TRUE(submission_gate.close(in(1s)));
  submission_gate.open();
}

TEST_F(SubmissionGateTest, one_thread_closes_it_at_a_time_and_none_within_a_submission) {
  ASSERT_TRUE(submission_gate.close(in(1s)));
  std::thread([] { EXPECT_FALSE(submission_gate.close(in(50ms))); }).join();
  submission_gate.open();
  const Submission submitting;
  EXPECT_FALSE(submission_gate.close(in(1s)));
}

TEST_F(SubmissionGateTest, threads_that_are_gone_make_room_for_others) {
  for (int i = 0; i < 3000; ++i) std::thread([] { const Submission one; }).join();
  EXPECT_TRUE(submission_gate.close(in(1s)));
  submission_gate.open();
}

// The thread that would open it is its parent's.
TEST_F(SubmissionGateTest, a_forked_child_does_not_wait_for_its_parent) {
  ASSERT_TRUE(submission_gate.close(in(1s)));
  std::thread forks([] {
    const pid_t child = fork();
    if (child == 0) {
      { const Submission passes; }
      _exit(3);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3);
  });
  forks.join();
  submission_gate.open();
}

}  // namespace
}  // namespace cuwarden::driver
