// The turn to write a report: what becomes of it when its thread is interrupted or jumps away.
#include "shim/turns/writing_turn.hpp"

#include <gtest/gtest.h>

#include <csetjmp>
#include <cstring>
#include <thread>

#include "tests/unit/manual_clock.hpp"

namespace cuwarden::shim {
namespace {

using enum WritingTurn::Answer;
constexpr std::uint64_t longest_wait_ns = 1'000'000'000;

class WritingTurnTest : public testing::Test {
 protected:
  WritingTurnTest() {
    clock.has_time_passed_waiting = [] { return true; };
  }
  // Takes the turn in cuwarden's own work, and leaves that work by a jump.
  [[gnu::noinline]] void jump_away() {
    std::jmp_buf outside;
    if (setjmp(outside) == 0) take_and_jump(outside);
    hooks::forget_left_driver_call(__builtin_frame_address(0));
  }
  // Calls more functions, so that their frames lie where those of the work lay.
  [[gnu::noinline]] static void go_on() {
    volatile char frames[8192];
    std::memset(const_cast<char*>(frames), 0x5a, sizeof frames);
  }

  ManualClock clock;
  WritingTurn turn{clock};

 private:
  [[gnu::noinline]] void take_and_jump(std::jmp_buf& outside) {
    const hooks::OwnWork work(__builtin_frame_address(0));
    EXPECT_EQ(turn.take(longest_wait_ns), taken);
    std::longjmp(outside, 1);
  }
};

TEST_F(WritingTurnTest, a_thread_that_jumped_away_takes_its_own_turn_over) {
  jump_away();
  const hooks::OwnWork work(__builtin_frame_address(0));
  EXPECT_EQ(turn.take(longest_wait_ns), taken_over);
  {
    const hooks::OwnWork of_handler(__builtin_frame_address(0));
    EXPECT_EQ(turn.take(longest_wait_ns), interrupted);
  }
  turn.give_back();
  EXPECT_EQ(turn.take(longest_wait_ns), taken);
}

TEST_F(WritingTurnTest, another_thread_takes_the_turn_of_one_that_jumped_away_without_waiting) {
  jump_away();
  go_on();
  std::thread([this] {
    const std::uint64_t begun_ns = clock.now_ns();
    EXPECT_EQ(turn.take(longest_wait_ns), taken_over);
    EXPECT_EQ(clock.now_ns(), begun_ns);
  }).join();
}

TEST_F(WritingTurnTest, a_thread_that_still_writes_keeps_its_turn) {
  const hooks::OwnWork work(__builtin_frame_address(0));
  ASSERT_EQ(turn.take(longest_wait_ns), taken);
  go_on();
  std::thread([this] {
    const std::uint64_t begun_ns = clock.now_ns();
    EXPECT_EQ(turn.take(longest_wait_ns), not_given);
    EXPECT_GE(clock.now_ns(), begun_ns + longest_wait_ns);
  }).join();
  EXPECT_TRUE(turn.is_callers());
  turn.give_back();
}

}  // namespace
}  // namespace cuwarden::shim
