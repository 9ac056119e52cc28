// Threads that end the process at the same time: each waits for the others, but not for ever.
#include "shim/turns/end_turn.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "runtime_hooks/core/thread_id.hpp"
#include "tests/comes_about.hpp"
#include "tests/unit/manual_clock.hpp"

namespace cuwarden::shim {
namespace {

constexpr std::uint64_t ms = 1'000'000, second = 1'000 * ms;

// On a clock by which each wait of an EndTurn lasts as long as it may.
class EndTurnTest : public testing::Test {
 protected:
  EndTurnTest() {
    clock.has_time_passed_waiting = [] { return true; };
    turn.set_symbol_time(2 * second);
  }
  // A thread that has done something by the end of the construction, and then does nothing more
  // until the object's end.
  class StuckThread {
   public:
    explicit StuckThread(const std::function<void()>& before)
        : thread_([this, &before] {
            before();
            has_begun_ = true;
            wait_until("the object ends", [this] { return ends_.load(); });
          }) {
      wait_until("the thread has begun", [this] { return has_begun_.load(); });
    }
    ~StuckThread() {
      ends_ = true;
      thread_.join();
    }
    StuckThread(const StuckThread&) = delete;

   private:
    std::atomic<bool> has_begun_{false}, ends_{false};
    std::thread thread_;
  };
  // Returns the nanoseconds of the clock that the call takes.
  std::uint64_t time_of(const std::function<void()>& call) {
    const std::uint64_t begun_ns = clock.now_ns();
    call();
    return clock.now_ns() - begun_ns;
  }

  ManualClock clock;
  EndTurn turn{clock};
};

TEST_F(EndTurnTest, a_thread_that_is_stuck_in_writing_is_waited_for_as_long_as_a_report_may_take) {
  const StuckThread writer([&] { EXPECT_TRUE(turn.take(true)); });
  const std::uint64_t waited_ns = time_of([&] { EXPECT_FALSE(turn.take(true)); });
  EXPECT_GE(waited_ns, 12 * second);
  EXPECT_LE(waited_ns, 12 * second + 50 * ms);
}

TEST_F(EndTurnTest, a_turn_that_a_thread_took_to_its_end_goes_to_the_next_at_once) {
  int writer = 0;
  std::thread([&] {
    writer = own_thread_id();
    EXPECT_TRUE(turn.take(true));
  }).join();
  // The kernel may still have the thread when it has been joined.
  ASSERT_TRUE(comes_about([&] { return thread_has_ended(writer); }));
  EXPECT_EQ(time_of([&] { EXPECT_TRUE(turn.take(true)); }), 0u);
}

TEST_F(EndTurnTest, the_second_thread_in_exit_waits_shortly_for_a_leader) {
  std::thread([&] { EXPECT_EQ(time_of([&] { turn.enter_exit(); }), 0u); }).join();
  EXPECT_EQ(time_of([&] { turn.enter_exit(); }), 50 * ms);
  turn.leads_the_end();
  std::thread([&] { EXPECT_EQ(time_of([&] { turn.enter_exit(); }), 0u); }).join();
}

TEST_F(EndTurnTest, a_report_that_is_not_begun_is_waited_for_half_a_second) {
  std::atomic<std::uint32_t> done{0};
  EXPECT_EQ(time_of([&] { turn.wait_until(done); }), 500 * ms);
  done = 1;
  EXPECT_EQ(time_of([&] { turn.wait_until(done); }), 0u);
}

TEST_F(EndTurnTest, a_leader_that_is_stuck_loses_the_lead_after_two_seconds) {
  const StuckThread leader([&] { turn.leads_the_end(); });
  EXPECT_TRUE(turn.another_leads_the_end());
  EXPECT_EQ(time_of([&] { turn.wait_for_leader(); }), 2 * second);
  EXPECT_FALSE(turn.another_leads_the_end());
}

TEST_F(EndTurnTest, a_leader_keeps_the_lead_for_as_long_as_a_report_may_take_to_write) {
  const StuckThread leader([&] {
    turn.leads_the_end();
    EXPECT_TRUE(turn.take(true));
  });
  EXPECT_EQ(time_of([&] { turn.wait_for_leader(); }), 12 * second);
  EXPECT_FALSE(turn.another_leads_the_end());
}

}  // namespace
}  // namespace cuwarden::shim
