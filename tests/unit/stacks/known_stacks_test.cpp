// The tables of known stacks by themselves: made-up stacks, and signal handlers at every
// instruction.
#include "runtime_hooks/stacks/known_stacks.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <thread>

// Forked children get the tables, too, which the product keeps from them.
extern "C" int madvise(void* start, std::size_t bytes, int advice) noexcept {
  return advice == MADV_DONTFORK ? 0 : static_cast<int>(syscall(SYS_madvise, start, bytes, advice));
}

namespace {

using namespace cuwarden;
using namespace cuwarden::stacks;

// Words that stand for a thread's stack. A stack is identified by the word at which its walk
// begins.
struct MadeUpStack {
  static constexpr std::size_t count = 512;
  std::array<std::uint64_t, count> words;

  MadeUpStack() {
    for (std::size_t i = 0; i < count; ++i) words[i] = 1000 + i;
    own_stack.low = reinterpret_cast<std::uint64_t>(words.data());
    own_stack.top = reinterpret_cast<std::uint64_t>(words.data() + count);
    own_stack.confirmed = true;
  }
  ~MadeUpStack() { own_stack = {}; }
  MadeUpStack(const MadeUpStack&) = delete;
  MadeUpStack& operator=(const MadeUpStack&) = delete;

  std::uint64_t at(std::size_t word) const {
    return reinterpret_cast<std::uint64_t>(words.data() + word);
  }
  KnownStacks::Offset offset_of(std::size_t word) const {
    return static_cast<KnownStacks::Offset>(at(word) - own_stack.top);
  }
  // Notes the pair that every entry has, at the stack's start. The saved rbp there does not count.
  void note_start(KnownStacks::Entry& entry, std::size_t word) const {
    entry.pair_bytes = entry.word_bytes = 0;
    entry.first = {words[word], words[word + 1]};
    entry.first_lower_counts = 0;
  }
  // Remembers a stack of three words that begins at `word`.
  void remember(KnownStacks& known, ThreadSlot slot, std::size_t word, std::uint32_t name) const {
    const std::uint32_t generation = known.generation();
    KnownStacks::Draft draft;
    known.begin(draft, slot, at(word));
    if (!draft) return;
    KnownStacks::Entry& entry = draft.entry();
    note_start(entry, word);
    entry.word_bytes = sizeof(KnownStacks::Words);
    for (std::size_t i = 0; i < KnownStacks::block; ++i) {
      entry.word_blocks[0].offsets[i] = offset_of(word + 2);
      entry.word_blocks[0].values[i] = words[word + 2];
    }
    entry.last_offset = offset_of(word + 3);
    entry.last_value = words[word + 3];
    known.keep(draft, name, generation);
  }
};

constexpr ThreadSlot slot{1, 1};

TEST(KnownStacksTest, AStackIsKnownUntilAWordOfItChanges) {
  MadeUpStack stack;
  KnownStacks known;
  EXPECT_EQ(known.find(stack.at(7)), 0u);
  stack.remember(known, slot, 7, 42);
  EXPECT_EQ(known.find(stack.at(7)), 42u);
  for (const std::size_t word : {8u, 9u, 10u}) {
    ++stack.words[word];
    EXPECT_EQ(known.find(stack.at(7)), 0u) << word;
    --stack.words[word];
    EXPECT_EQ(known.find(stack.at(7)), 42u);
  }
  known.forget_all();
  EXPECT_EQ(known.find(stack.at(7)), 0u);
}

TEST(KnownStacksTest, TheSavedRbpAtTheStartCountsIfTheWalkUsedIt) {
  MadeUpStack stack;
  KnownStacks known;
  for (const bool counts : {false, true}) {
    KnownStacks::Draft draft;
    known.begin(draft, slot, stack.at(7));
    ASSERT_TRUE(draft);
    stack.note_start(draft.entry(), 7);
    draft.entry().first_lower_counts = counts ? ~std::uint64_t{0} : 0;
    draft.entry().last_offset = stack.offset_of(9);
    draft.entry().last_value = stack.words[9];
    known.keep(draft, 42, known.generation());
    ++stack.words[7];
    EXPECT_EQ(known.find(stack.at(7)), counts ? 0u : 42u);
    --stack.words[7];
    EXPECT_EQ(known.find(stack.at(7)), 42u);
    known.forget_all();
  }
}

TEST(KnownStacksTest, StacksOfOneStartAreToldApart) {
  for (const std::size_t word : {8u, 9u, 10u}) {
    MadeUpStack stack;
    KnownStacks known;
    for (std::uint32_t path = 1; path <= 8; ++path) {
      stack.words[word] = path;
      stack.remember(known, slot, 7, path);
    }
    for (std::uint32_t path = 1; path <= 8; ++path) {
      stack.words[word] = path;
      EXPECT_EQ(known.find(stack.at(7)), path);
    }
  }
}

// Stacks of one start and of others come in turn; none of them is expected in the first round.
TEST(KnownStacksTest, TheStackThatFollowedLastTimeIsExpected) {
  MadeUpStack stack;
  KnownStacks known;
  EXPECT_EQ(known.expected(), 0u);
  const std::size_t starts[] = {7, 7, 40, 7, 90};
  const auto each = [&](const auto& visit) {
    for (std::uint32_t path = 1; path <= 5; ++path) {
      stack.words[9] = path;
      visit(path, starts[path - 1]);
    }
  };
  each([&](std::uint32_t path, std::size_t start) { stack.remember(known, slot, start, path); });
  each(
      [&](std::uint32_t path, std::size_t start) { ASSERT_EQ(known.find(stack.at(start)), path); });
  for (int turn = 0; turn < 2; ++turn)
    each([&](std::uint32_t path, std::size_t start) {
      EXPECT_EQ(known.expected(), path);
      EXPECT_EQ(known.find(stack.at(start)), path);
    });
  // Stacks are found in another order, too, and if one is left out.
  for (const std::uint32_t path : {2u, 4u, 3u, 5u, 1u}) {
    stack.words[9] = path;
    EXPECT_EQ(known.find(stack.at(starts[path - 1])), path);
  }
}

TEST(KnownStacksTest, ANameThatWasFoundBeforeNamesWereForgottenIsNotKept) {
  MadeUpStack stack;
  KnownStacks known;
  const std::uint32_t generation = known.generation();
  KnownStacks::Draft draft;
  known.begin(draft, slot, stack.at(7));
  ASSERT_TRUE(draft);
  stack.note_start(draft.entry(), 7);
  draft.entry().last_offset = stack.offset_of(9);
  draft.entry().last_value = stack.words[9];
  known.forget_all();
  known.keep(draft, 42, generation);
  EXPECT_EQ(known.find(stack.at(7)), 0u);
}

TEST(KnownStacksTest, AThreadThatReusesANumberFindsNoStackOfItsPredecessor) {
  KnownStacks known;
  MadeUpStack stack;
  // The memory is the same, as when a thread's stack is reused.
  const auto in_thread = [&](ThreadSlot mine, std::uint32_t name) {
    std::thread([&] {
      own_stack.low = stack.at(0);
      own_stack.top = stack.at(MadeUpStack::count);
      own_stack.confirmed = true;
      EXPECT_EQ(known.find(stack.at(7)), 0u);
      stack.remember(known, mine, 30, 1);  // Takes over the table.
      EXPECT_EQ(known.find(stack.at(7)), 0u);
      stack.remember(known, mine, 7, name);
      EXPECT_EQ(known.find(stack.at(7)), name);
    }).join();
  };
  for (std::uint32_t tenancy = 1; tenancy < 10; ++tenancy) in_thread({1, tenancy}, 10 * tenancy);
}

TEST(KnownStacksTest, AThreadWithoutANumberRemembersNothing) {
  MadeUpStack stack;
  KnownStacks known;
  stack.remember(known, {}, 7, 42);
  EXPECT_EQ(known.find(stack.at(7)), 0u);
}

TEST(KnownStacksTest, AllThreadsTogetherUseAtMostTheLimitOfEntries) {
  KnownStacks known;
  std::set<const void*> used;
  for (std::uint32_t number = 1; number < ThreadSlot::count; ++number)
    std::thread([&] {
      own_stack.top = 0x7000'0000'0000;
      own_stack.confirmed = true;
      for (std::uint64_t start = 0x6fff'0000'0000; start < 0x6fff'0001'0000; start += 16) {
        KnownStacks::Draft draft;
        known.begin(draft, {number, 1}, start);
        if (!draft) continue;
        used.insert(&draft.entry());
        draft.entry().pair_bytes = draft.entry().word_bytes = 0;
        known.keep(draft, 1, known.generation());
      }
    }).join();
  EXPECT_EQ(used.size(), 4096u);
}

// --- a signal handler that remembers a stack, too, at every instruction in turn

std::function<void()>* handler = nullptr;
volatile long instructions = 0;  // number of instructions that were stepped through
volatile bool forks = false;     // true: the handler runs at each instruction, in a child
volatile long handler_at = 0;    // in a child, the instruction at which the handler ran; else 0
volatile int failed_children = 0;
volatile long failed_at = 0;  // earliest instruction whose child failed
sigjmp_buf outside;

// Each run of the handler is in a child, a copy of the process at this instruction, which goes on
// without steps. So the code before is not stepped through again for each run.
void on_trap(int, siginfo_t*, void* context) {
  instructions = instructions + 1;
  if (!forks) return;
  const pid_t child = fork();
  if (child != 0) {
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0) return;
    if (failed_children == 0) failed_at = instructions;
    failed_children = failed_children + 1;
    return;
  }
  handler_at = instructions;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
  (*handler)();
}

void step(bool on) {
  if (on)
    asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
  else
    asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

class HandlerAtEveryInstruction : public testing::Test {
 protected:
  void SetUp() override {
    struct sigaction action {};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, &before_);
  }
  void TearDown() override { sigaction(SIGTRAP, &before_, nullptr); }

  static constexpr std::size_t ours = 200;
  // Returns the start of another stack in the same set, or in another one.
  std::size_t other_start(bool in_same_set) const {
    const auto set = [&](std::size_t word) { return stack.at(word) / 16 % 32; };
    std::size_t word = 0;
    while (word == ours || (set(word) == set(ours)) != in_same_set) ++word;
    return word;
  }

  // Remembers our stack, interrupted at each instruction by a handler that remembers another stack.
  // `jumps`: the handler leaves by siglongjmp. `first_of_thread`: the thread has no table before.
  void check(std::size_t theirs, bool jumps, bool first_of_thread) {
    std::function<void()> remembers_too = [&] {
      stack.remember(*known, slot, theirs, 222);
      const std::uint32_t found = known->find(stack.at(theirs));
      EXPECT_TRUE(found == 0 || found == 222) << found;
      if (jumps) siglongjmp(outside, 1);
    };
    handler = &remembers_too;
    failed_children = 0;
    // Not counted: in this run, the loader looks up functions.
    remember_stepping(false, first_of_thread);
    remember_stepping(false, first_of_thread);
    const long all = instructions;
    ASSERT_GT(all, 100);
    if (sigsetjmp(outside, 1) == 0) remember_stepping(true, first_of_thread);
    if (handler_at != 0) {
      expect_working_table(theirs);
      std::fflush(stdout);
      _exit(HasFailure() ? 1 : 0);
    }
    EXPECT_EQ(instructions, all);
    EXPECT_EQ(failed_children, 0) << "the first at instruction " << failed_at;
  }

  // Remembers our stack instruction by instruction. `with_handler`: runs the handler at each one.
  void remember_stepping(bool with_handler, bool first_of_thread) {
    known = std::make_unique<KnownStacks>();
    if (!first_of_thread) stack.remember(*known, slot, 400, 7);
    instructions = 0;
    forks = with_handler;
    step(true);
    stack.remember(*known, slot, ours, 111);
    step(false);
  }

  void expect_working_table(std::size_t theirs) {
    const std::uint32_t found = known->find(stack.at(ours));
    EXPECT_TRUE(found == 0 || found == 111) << found << " at instruction " << handler_at;
    const std::uint32_t other = known->find(stack.at(theirs));
    EXPECT_TRUE(other == 0 || other == 222) << other << " at instruction " << handler_at;
    if (found == 0) stack.remember(*known, slot, ours, 111);
    EXPECT_EQ(known->find(stack.at(ours)), 111u) << "at instruction " << handler_at;
  }

  MadeUpStack stack;
  std::unique_ptr<KnownStacks> known;

 private:
  struct sigaction before_ {};
};

TEST_F(HandlerAtEveryInstruction, StacksOfOneSetAreNotConfused) {
  check(other_start(true), false, false);
}
TEST_F(HandlerAtEveryInstruction, AHandlerThatJumpsAwayLeavesATableThatWorks) {
  check(other_start(true), true, false);
}
TEST_F(HandlerAtEveryInstruction, AHandlerDuringAThreadsFirstStackLeavesATableThatWorks) {
  check(other_start(false), true, true);
}

}  // namespace
