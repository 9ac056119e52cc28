// The stack on which reports are written: the thread's own, or a fresh one where that is too small.
#include "shim/support/own_stack.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>
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

// Runs `work` in a thread with a stack of 256 KiB.
void in_a_small_thread(const std::function<void()>& work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread{};
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* given) -> void* {
                  (*static_cast<const std::function<void()>*>(given))();
                  return nullptr;
                },
                const_cast<std::function<void()>*>(&work)),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
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

TEST(OwnStack, a_stack_with_enough_room_is_not_left) {
  int own = 0;
  EXPECT_LT(distance(address_inside(), reinterpret_cast<std::uintptr_t>(&own)), 64u << 10);
}

TEST(OwnStack, a_small_stack_is_left) {
  in_a_small_thread([] {
    int own = 0;
    const std::uintptr_t here = address_inside();
    EXPECT_NE(here, 0u);
    EXPECT_GT(distance(here, reinterpret_cast<std::uintptr_t>(&own)), 200u << 10);
  });
}

TEST(OwnStack, a_fresh_stack_ends_in_a_page_without_access) {
  struct Seen {
    std::uintptr_t here = 0;
    std::vector<Range> ranges;
  } seen;
  in_a_small_thread([&] {
    call_on_own_stack(
        [](void* argument) {
          int local = 0;
          auto& noted = *static_cast<Seen*>(argument);
          noted.here = reinterpret_cast<std::uintptr_t>(&local);
          noted.ranges = mapped_ranges();
        },
        &seen);
  });
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
  in_a_small_thread([&] {
    call_on_own_stack(
        [](void* argument) {
          try {
            throw 1;
          } catch (int) {
            *static_cast<bool*>(argument) = true;
          }
        },
        &caught);
  });
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

}  // namespace
