// Stacks that are not the first thread's own, and walks from one to another: signal handlers,
// coroutines, threads.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/contract/stacks/comparing.hpp"
#include "tests/repetitions.hpp"

namespace {

#define NOINLINE __attribute__((noinline))

std::vector<char> signal_stack(std::size_t bytes) {
  std::vector<char> memory(bytes);
  stack_t stack{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  EXPECT_EQ(sigaltstack(&stack, nullptr), 0);
  return memory;
}
void no_signal_stack() {
  stack_t off{};
  off.ss_flags = SS_DISABLE;
  sigaltstack(&off, nullptr);
}

void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
}

NOINLINE int deep(int depth, int (*work)()) {
  if (depth == 0) return work();
  const int result = deep(depth - 1, work);
  asm volatile("" ::: "memory");
  return result;
}

TEST(OtherStacks, ASignalHandlersStackIsFollowedIntoTheInterruptedCode) {
  Comparing all;
  static int seen;
  const auto handler = [](int) { seen = compared(); };
  handle(SIGUSR1, handler, 0);
  const auto raised = [] { return raise(SIGUSR1), seen; };
  const int plain = deep(30, raised);
  EXPECT_GT(plain, 30);
  const auto memory = signal_stack(65536);
  handle(SIGUSR1, handler, SA_ONSTACK);
  EXPECT_EQ(deep(30, raised), plain);
  no_signal_stack();
  EXPECT_EQ(all.not_expressible(), 0u);
}

TEST(OtherStacks, ASignalHandlerInAnotherIsFollowedThroughBoth) {
  Comparing all;
  static int seen;
  const auto memory = signal_stack(65536);
  handle(
      SIGUSR1, [](int) { deep(5, [] { return raise(SIGUSR2); }); }, SA_ONSTACK);
  handle(
      SIGUSR2, [](int) { seen = compared(); }, SA_ONSTACK);
  deep(10, [] { return raise(SIGUSR1); });
  EXPECT_GT(seen, 20);
  no_signal_stack();
}

// The signal stack lies on the thread's stack, above the interrupted frames.
TEST(OtherStacks, ASignalStackThatLiesOnTheThreadsStackIsFollowedIntoTheInterruptedCode) {
  Comparing all;
  static int seen;
  char memory[65536];
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = sizeof memory;
  ASSERT_EQ(sigaltstack(&stack, nullptr), 0);
  handle(
      SIGUSR1, [](int) { seen = compared(); }, SA_ONSTACK);
  deep(20, [] { return raise(SIGUSR1); });
  EXPECT_GT(seen, 20);
  no_signal_stack();
}

// Between set_trap_flag(true) and set_trap_flag(false), step_on() interrupts every instruction:
// beginnings and ends of functions, linkage tables, the loader while it resolves a symbol.
std::uint64_t steps;
void step_on(int, siginfo_t*, void*) {
  ++steps;
  compare_stacks();
}
void set_trap_flag(bool on) {
  if (on)
    asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
  else
    asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

NOINLINE double realigned(double value) {
  alignas(64) volatile double values[8] = {value, 2};
  return values[0] * values[1];
}

TEST(OtherStacks, AtEveryInstructionTheStackIsTheOneThatLibgccGives) {
  Comparing all;
  const auto memory = signal_stack(131072);
  struct sigaction action {};
  action.sa_sigaction = step_on;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  sigaction(SIGTRAP, &action, nullptr);
  steps = 0;
  volatile double sum = 0;
  set_trap_flag(true);
  for (int i = 0; i < 3; ++i) {
    sum = sum + realigned(i);
    std::vector<int> numbers(20, i);
    numbers.push_back(deep(3, [] { return getpagesize(); }));
    try {
      if (i == 1) throw i;
    } catch (int) {
      sum = sum + 1;
    }
    char text[64];
    snprintf(text, sizeof text, "%d %s", i, "text");
  }
  // This function was not called before: the loader resolves it now, unless everything was bound at
  // the start.
  sum = sum + static_cast<double>(getppid() > 0 ? sched_get_priority_max(SCHED_FIFO) : 0);
  set_trap_flag(false);
  no_signal_stack();
  EXPECT_GT(steps, 5000u);
  EXPECT_GE(all.compared(), steps);
  // Rules fail to express only single instructions of some functions. The loader's own code for
  // resolving symbols, with all that it calls, uses rbx as its frame's base.
  if (std::getenv("LD_BIND_NOW") != nullptr) {
    EXPECT_LT(all.not_expressible(), steps / 50);
  }
}

ucontext_t here, there;
int seen_there;
void in_coroutine() {
  for (int i = 0; i < 20; ++i) {
    seen_there = deep(i, compared);
    swapcontext(&there, &here);
  }
}

TEST(OtherStacks, ACoroutinesStackIsWalkedToItsEnd) {
  Comparing all;
  std::vector<char> memory(65536);
  ASSERT_EQ(getcontext(&there), 0);
  there.uc_stack.ss_sp = memory.data();
  there.uc_stack.ss_size = memory.size();
  there.uc_link = &here;
  makecontext(&there, in_coroutine, 0);
  for (int i = 0; i < 20; ++i) {
    swapcontext(&here, &there);
    EXPECT_GE(seen_there, i + 1);
    deep(i, compared);
  }
  EXPECT_EQ(all.unreadable(), 0u);
}

TEST(OtherStacks, EveryThreadsStackIsWalkedToItsEnd) {
  Comparing all;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([thread] {
      for (std::uint64_t i = 0; i < cuwarden::test::repetitions(500, 20'000); ++i)
        deep(static_cast<int>(i % 40) + thread, compared);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(all.recognised(), all.compared() / 4);
}

TEST(OtherStacks, AThreadOnAStackThatTheProgramGaveIsWalkedToItsEnd) {
  Comparing all;
  constexpr std::size_t bytes = 262144;
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, memory, bytes), 0);
  pthread_t thread;
  const auto work = [](void*) -> void* {
    for (int i = 0; i < 40; ++i) deep(i % 10, compared);
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, work, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  munmap(memory, bytes);
  EXPECT_GE(all.recognised(), 20u);
}

// As in vfork and posix_spawn, the child is another process in this one's memory, with this
// thread's thread-local variables.
TEST(OtherStacks, AChildThatSharesTheMemoryIsWalkedOnItsOwnStack) {
  Comparing all;
  std::vector<char> memory(262144);
  static int seen;
  const auto work = [](void*) { return seen = deep(10, compare_stacks), 0; };
  for (int i = 0; i < 3; ++i) {
    deep(10, compared);
    seen = 0;
    const int child =
        clone(work, memory.data() + memory.size(), CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr);
    ASSERT_GT(child, 0);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    EXPECT_GT(seen, 10) << last_difference();
  }
}

NOINLINE int recurse_with_much_room(int depth) {
  volatile char room[3000];
  room[0] = static_cast<char>(depth);
  const int frames = depth == 0 ? compared() : recurse_with_much_room(depth - 1);
  room[1] = room[0];
  return frames;
}

TEST(OtherStacks, AStackThatHasGrownDeeperIsStillTheThreadsOwn) {
  Comparing all;
  for (int depth : {1, 300, 300, 2, 800, 800, 300}) recurse_with_much_room(depth);
  EXPECT_EQ(all.unreadable(), 0u);
}

}  // namespace
