// The submission gate: many threads pass it while it is closed and opened.
#include "runtime_hooks/driver/submission_gate.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/comes_about.hpp"
#include "tests/repetitions.hpp"
#include "tests/thread_state.hpp"
#include "tests/unit/manual_clock.hpp"

namespace cuwarden::driver {
namespace {

constexpr std::uint64_t ms = 1'000'000;

// Gates of the tests' own, on a clock on which time passes in sleeps alone.
class SubmissionGateTest : public testing::Test {
 protected:
  SubmissionGateTest() {
    EXPECT_TRUE(gate.arm());
    clock.while_asleep = [] { std::this_thread::yield(); };
  }
  // A submission through the test's gate.
  class Through {
   public:
    explicit Through(SubmissionGate& gate) : mine_(*calling_threads.own()) { gate.enter(mine_); }
    ~Through() { SubmissionGate::leave(mine_); }
    Through(const Through&) = delete;

   private:
    SubmissionGate::Thread& mine_;
  };
  bool close(std::uint64_t patience_ns) { return gate.close(clock.now_ns() + patience_ns, clock); }

  ManualClock clock;
  SubmissionGate gate;
};

// While the gate is closed, is_moving is true, as if memory were being moved. Only the closing
// thread may submit then.
TEST_F(SubmissionGateTest, no_thread_submits_while_the_gate_is_closed) {
  constexpr std::uint64_t for_ever = std::uint64_t{1} << 60;
  std::atomic<bool> ends{false}, is_moving{false};
  std::atomic<std::uint64_t> passed{0}, wrong{0};
  std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i)
    all.emplace_back([&] {
      while (!ends) {
        const Through outer(gate);
        if (is_moving.load(std::memory_order_relaxed)) ++wrong;
        {
          const Through within(gate);
          if (is_moving.load(std::memory_order_relaxed)) ++wrong;
        }
        if (is_moving.load(std::memory_order_relaxed)) ++wrong;
        passed.fetch_add(1, std::memory_order_relaxed);
      }
    });
  for (std::uint64_t i = 0; i < test::repetitions(300); ++i) {
    ASSERT_TRUE(close(for_ever));
    is_moving.store(true, std::memory_order_relaxed);
    for (int turn = 0; turn < 20; ++turn) {
      const Through own(gate);  // passes
      std::this_thread::yield();
    }
    is_moving.store(false, std::memory_order_relaxed);
    const std::uint64_t since_last = passed;
    gate.open();
    // The gate is open again.
    ASSERT_TRUE(comes_about([&] { return passed != since_last; }));
  }
  ends = true;
  for (std::thread& one : all) one.join();
  EXPECT_EQ(wrong, 0u);
}

TEST_F(SubmissionGateTest, a_thread_that_never_comes_back_keeps_the_gate_open) {
  std::atomic<bool> is_in{false}, ends{false};
  std::thread stays([&] {
    const Through long_one(gate);
    is_in = true;
    wait_until("the other thread has asked", [&] { return ends.load(); });
  });
  wait_until("the thread is in", [&] { return is_in.load(); });
  const std::uint64_t begun_ns = clock.now_ns();
  EXPECT_FALSE(close(20 * ms));
  EXPECT_GE(clock.now_ns() - begun_ns, 20 * ms);
  std::thread([this] { const Through passes(gate); }).join();
  ends = true;
  stays.join();
  EXPECT_TRUE(close(ms));
  gate.open();
}

TEST_F(SubmissionGateTest, one_thread_at_a_time_closes_the_gate_and_none_within_a_submission) {
  ASSERT_TRUE(close(ms));
  std::thread([this] { EXPECT_FALSE(close(50 * ms)); }).join();
  gate.open();
  const Through submitting(gate);
  EXPECT_FALSE(close(ms));
}

TEST_F(SubmissionGateTest, threads_that_are_gone_make_room_for_others) {
  for (int i = 0; i < 3000; ++i) std::thread([this] { const Through one(gate); }).join();
  EXPECT_TRUE(close(1000 * ms));
  gate.open();
}

// Submits work, as a thread of asynchronous cancellation type.
struct Cancellable {
  SubmissionGate& gate;
  std::atomic<pid_t> thread{0};
  static void* submit(void* self) {
    auto& [gate, thread] = *static_cast<Cancellable*>(self);
    int before = 0;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    thread = gettid();
    gate.enter(*calling_threads.enter());
    return nullptr;
  }
};

TEST_F(SubmissionGateTest, a_thread_that_is_cancelled_at_the_gate_was_not_inside_the_driver) {
  if (test::is_sanitized)
    GTEST_SKIP() << "AddressSanitizer does not see a cancellation's unwinding";
  ASSERT_TRUE(close(1000 * ms));
  Cancellable submission{gate};
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, nullptr, Cancellable::submit, &submission), 0);
  wait_until("the thread waits", [&] { return thread_state(submission.thread) == 'S'; });
  ASSERT_EQ(pthread_cancel(thread), 0);
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_TRUE(calling_threads.are_all_outside(clock.now_ns() + ms, clock));
  gate.open();
  EXPECT_TRUE(close(ms));
  gate.open();
}

// The thread that would open the gate exists in the parent only.
TEST_F(SubmissionGateTest, a_forked_child_does_not_wait_for_its_parent) {
  ASSERT_TRUE(close(1000 * ms));
  std::thread forks([this] {
    const pid_t child = fork();
    if (child == 0) {
      { const Through passes(gate); }
      _exit(3);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3);
  });
  forks.join();
  gate.open();
}

}  // namespace
}  // namespace cuwarden::driver
