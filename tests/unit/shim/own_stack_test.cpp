// The stack on which larger work is done.
#include "shim/support/own_stack.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using cuwarden::shim::call_on_own_stack;

struct Range {
  std::uintptr_t start = 0, end = 0;
  std::string access;
};

std::vector<Range> mapped_ranges() {
  std::vector<Range> ranges;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Range range;
    char dash = 0;
    std::istringstream(line) >> std::hex >> range.start >> dash >> range.end >> range.access;
    ranges.push_back(range);
  }
  return ranges;
}

std::uintptr_t distance(std::uintptr_t a, std::uintptr_t b) { return a > b ? a - b : b - a; }

// Returns the address of a variable of the work that call_on_own_stack() calls.
std::uintptr_t address_inside() {
  std::uintptr_t here = 0;
  call_on_own_stack(
      [](void* answer) {
        int local = 0;
        *static_cast<std::uintptr_t*>(answer) = reinterpret_cast<std::uintptr_t>(&local);
      },
      &here);
  return here;
}

TEST(OwnStack, the_threads_stack_is_left) {
  int own = 0;
  const std::uintptr_t here = address_inside();
  EXPECT_NE(here, 0u);
  EXPECT_GT(distance(here, reinterpret_cast<std::uintptr_t>(&own)), 64u << 10);
}

TEST(OwnStack, a_fresh_stack_ends_in_a_page_without_access) {
  struct Seen {
    std::uintptr_t here = 0;
    std::vector<Range> ranges;
  } seen;
  call_on_own_stack(
      [](void* argument) {
        int local = 0;
        auto& noted = *static_cast<Seen*>(argument);
        noted.here = reinterpret_cast<std::uintptr_t>(&local);
        noted.ranges = mapped_ranges();
      },
      &seen);
  for (std::size_t i = 1; i < seen.ranges.size(); ++i) {
    const Range& stack = seen.ranges[i];
    if (seen.here < stack.start || seen.here >= stack.end) continue;
    EXPECT_EQ(stack.access.substr(0, 3), "rw-");
    EXPECT_EQ(seen.ranges[i - 1].end, stack.start);
    EXPECT_EQ(seen.ranges[i - 1].access.substr(0, 3), "---");
    return;
  }
  FAIL() << "the stack is in no mapping";
}

TEST(OwnStack, exceptions_can_be_thrown_and_caught_on_a_fresh_stack) {
  bool caught = false;
  call_on_own_stack(
      [](void* argument) {
        try {
          throw 1;
        } catch (int) {
          *static_cast<bool*>(argument) = true;
        }
      },
      &caught);
  EXPECT_TRUE(caught);
}

// --- on an alternate signal stack

volatile std::sig_atomic_t second_came = 0, second_came_inside = 0;

void note_second(int) { second_came = 1; }

void work_on_signal_stack(int) {
  call_on_own_stack(
      [](void*) {
        raise(SIGUSR2);
        second_came_inside = second_came;
      },
      nullptr);
}

TEST(OwnStack, a_signal_waits_until_the_thread_is_back_on_its_signal_stack) {
  std::vector<char> memory(64 << 10);
  const stack_t alternate{.ss_sp = memory.data(), .ss_flags = 0, .ss_size = memory.size()};
  stack_t stack_before{};
  ASSERT_EQ(sigaltstack(&alternate, &stack_before), 0);
  struct sigaction first {
  }, second{};
  first.sa_flags = second.sa_flags = SA_ONSTACK;
  first.sa_handler = work_on_signal_stack;
  second.sa_handler = note_second;
  sigaction(SIGUSR1, &first, nullptr);
  sigaction(SIGUSR2, &second, nullptr);
  raise(SIGUSR1);
  EXPECT_EQ(second_came_inside, 0);
  EXPECT_EQ(second_came, 1);
  ASSERT_EQ(sigaltstack(&stack_before, nullptr), 0);
  signal(SIGUSR1, SIG_DFL);
  signal(SIGUSR2, SIG_DFL);
}

// --- without memory

// Returns the exit status of a child that gets no memory and calls on its own stack: 1 if the work
// was called, 0 if not.
int status_without_memory(bool reserved) {
  const pid_t child = fork();
  if (child == 0) {
    if (reserved) cuwarden::shim::reserve_own_stack();
    const rlimit none{0, 0};
    setrlimit(RLIMIT_AS, &none);
    bool called = false;
    const auto note = [](void* answer) { *static_cast<bool*>(answer) = true; };
    _exit(call_on_own_stack(note, &called) == called ? called : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(OwnStack, the_reserved_stack_serves_without_memory) {
  EXPECT_EQ(status_without_memory(false), 0);
  EXPECT_EQ(status_without_memory(true), 1);
}

}  // namespace
