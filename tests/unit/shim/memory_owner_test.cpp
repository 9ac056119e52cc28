// The owner of a forked child's memory, and threads that wait until it is known.
#include "shim/support/memory_owner.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/manual_clock.hpp"

namespace cuwarden::shim {
namespace {

// Runs `checks` in a forked child. Returns the child's exit status: the number of the check that
// failed, or 0.
int in_a_forked_child(int (*checks)()) {
  const pid_t child = fork();
  if (child == 0) _exit(checks());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(MemoryOwner, a_forked_child_owns_its_memory_once_it_has_taken_it_over) {
  static MemoryOwner memory;
  static ManualClock clock;
  memory.mark();
  ASSERT_TRUE(memory.is_ours());
  EXPECT_EQ(memory.owner(), getpid());
  EXPECT_EQ(in_a_forked_child([] {
              if (memory.is_ours() || memory.owner() != 0) return 1;
              if (!memory.take_over(clock, [] {})) return 2;
              return memory.is_ours() && memory.owner() == getpid() ? 0 : 3;
            }),
            0);
  EXPECT_EQ(memory.owner(), getpid());
}

// The call in the middle of the other one stands for that of a second thread, or of a signal
// handler.
TEST(MemoryOwner, the_wait_for_another_thread_that_takes_the_memory_over_ends_after_ten_seconds) {
  static MemoryOwner memory;
  static ManualClock clock;
  clock.has_time_passed_waiting = [] { return true; };
  static bool first = true, again = true;
  static std::uint64_t first_ns = 0, again_ns = 0;
  memory.mark();
  ASSERT_TRUE(memory.is_ours());
  EXPECT_EQ(in_a_forked_child([] {
              const bool whole = memory.take_over(clock, [] {
                const std::uint64_t begin_ns = clock.now_ns();
                first = memory.take_over(clock, nullptr);
                first_ns = clock.now_ns() - begin_ns;
                again = memory.take_over(clock, nullptr);
                again_ns = clock.now_ns() - begin_ns - first_ns;
              });
              if (first || first_ns != 10'000'000'000) return 1;
              if (again || again_ns != 0) return 2;
              return whole && memory.is_ours() ? 0 : 3;
            }),
            0);
}

TEST(MemoryOwner,
     a_child_of_a_child_in_which_the_memory_was_being_taken_over_takes_it_over_itself) {
  static MemoryOwner memory;
  static ManualClock clock;
  static int inner = -1;
  memory.mark();
  ASSERT_TRUE(memory.is_ours());
  EXPECT_EQ(in_a_forked_child([] {
              memory.take_over(clock, [] {
                inner = in_a_forked_child([] {
                  return memory.take_over(clock, [] {}) && memory.owner() == getpid() ? 0 : 1;
                });
              });
              return inner;
            }),
            0);
}

}  // namespace
}  // namespace cuwarden::shim
