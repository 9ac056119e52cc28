// Counters with a shard for each thread: no count is lost, with any number of threads.
#include "runtime_hooks/ledger/storage/thread_shards.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <mutex>
#include <random>
#include <thread>

#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"
#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"
#include "tests/comes_about.hpp"
#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden::ledger {
namespace {

GroupId device_group_of(Writer& writer) {
  const Frame frame = 0x1234;
  return writer.groups.get({.stack = writer.stacks.intern({&frame, 1}, false),
                            .api = HookId{0},
                            .kind = Kind::device,
                            .device = DeviceOrdinal{0}});
}

void allocate(Writer& writer, GroupId group, std::uint64_t address, std::uint64_t bytes) {
  writer.thread_shards.count_call(HookId{0});
  NewRecord record;
  record.space = Space::pointer;
  record.address.value = address;
  record.bytes.value = bytes;
  record.group = group;
  writer.allocations.add(record);
}

void free(Writer& writer, std::uint64_t address) {
  writer.thread_shards.count_call(HookId{1});
  writer.allocations.take(Space::pointer, DeviceAddress{address});
}

// There are fewer shards than this.
constexpr int thread_count = 100;

TEST(ThreadShards, more_threads_at_a_time_than_shards_lose_no_count) {
  const TemporaryFolder folder;
  Writer* const writer = make_writer(folder.path());
  const GroupId group = device_group_of(*writer);
  constexpr int turns = 300;
  std::latch all_there(thread_count), all_allocated(thread_count);
  std::vector<std::thread> workers;
  for (int thread = 0; thread < thread_count; ++thread) {
    workers.emplace_back([&, thread] {
      const auto address = [](int whose, int turn) {
        return static_cast<std::uint64_t>(1 + whose * turns + turn) << 9;
      };
      all_there.arrive_and_wait();
      for (int turn = 0; turn < turns; ++turn) allocate(*writer, group, address(thread, turn), 100);
      all_allocated.arrive_and_wait();
      // Frees the allocations of the neighbouring thread, except for ten.
      for (int turn = 10; turn < turns; ++turn)
        free(*writer, address((thread + 1) % thread_count, turn));
    });
  }
  for (std::thread& worker : workers) worker.join();
  const Reader reader = read(*writer);
  const GroupView view = reader.group(group.value).value();
  EXPECT_EQ(view.allocations, std::uint64_t{thread_count} * turns);
  EXPECT_EQ(view.allocated_bytes, std::uint64_t{thread_count} * turns * 100);
  EXPECT_EQ(view.frees, std::uint64_t{thread_count} * (turns - 10));
  expect_live(reader, {std::uint64_t{thread_count} * 10, std::uint64_t{thread_count} * 1000});
  EXPECT_EQ(reader.series(1)->peak_bytes, std::uint64_t{thread_count} * turns * 100);
  EXPECT_EQ(reader.series(1)->peak_count, std::uint64_t{thread_count} * turns);
  EXPECT_EQ(reader.hook(0)->calls, std::uint64_t{thread_count} * turns);
  EXPECT_EQ(reader.hook(1)->calls, std::uint64_t{thread_count} * (turns - 10));
  EXPECT_EQ(reader.process().recorded_calls, std::uint64_t{thread_count} * (2 * turns - 10));
}

TEST(ThreadShards, ended_threads_leave_their_shards_to_others) {
  const TemporaryFolder folder;
  Writer* const writer = make_writer(folder.path());
  const GroupId group = device_group_of(*writer);
  constexpr int generations = 500;
  for (int i = 0; i < generations; ++i) {
    std::thread([&] {
      allocate(*writer, group, static_cast<std::uint64_t>(i + 1) << 9, 10);
    }).join();
  }
  const Reader reader = read(*writer);
  EXPECT_EQ(reader.group(group.value)->allocations, std::uint64_t{generations});
  EXPECT_EQ(reader.hook(0)->calls, std::uint64_t{generations});
  expect_live(reader, {generations, generations * 10});
  EXPECT_EQ(reader.process().reasons & reason_ledger_full, 0u);
  // There is one row for each thread's shard, except for the group's own, and none for the shard
  // that threads without one share.
  EXPECT_LE(reader.rows(RegionId::group_shards), 65u);
}

// Several threads make changes, but one after the other, so that the peak is known exactly.
TEST(ThreadShards, the_peak_is_exact_with_any_credits_of_the_threads) {
  const TemporaryFolder folder;
  Writer* const writer = make_writer(folder.path());
  const GroupId group = device_group_of(*writer);
  struct Block {
    std::uint64_t address, bytes;
  };
  std::mutex turn;
  std::vector<Block> live;
  std::uint64_t bytes = 0, peak = 0, peak_count = 0, next = 1 << 9, wanted = 50;
  std::mt19937_64 random(20);
  const auto change = [&] {
    const std::lock_guard mine(turn);
    if (random() % 2000 == 0) wanted = 1 + random() % 400;
    if (live.size() < wanted + random() % 8) {
      const std::uint64_t size = random() % (std::uint64_t{1} << (random() % 16));
      allocate(*writer, group, next, size);
      live.push_back({next, size});
      next += 1 << 9;
      bytes += size;
      if (bytes > peak) {
        peak = bytes;
        peak_count = live.size();
      }
    } else {
      std::swap(live[random() % live.size()], live.back());
      free(*writer, live.back().address);
      bytes -= live.back().bytes;
      live.pop_back();
    }
  };
  std::vector<std::thread> workers;
  for (int thread = 0; thread < 8; ++thread)
    workers.emplace_back([&] {
      for (int i = 0; i < 40'000; ++i) change();
    });
  for (std::thread& worker : workers) worker.join();
  const Reader reader = read(*writer);
  EXPECT_EQ(reader.series(1)->peak_bytes, peak);
  EXPECT_EQ(reader.series(1)->peak_count, peak_count);
  // Bytes that threads still keep as credits are within their limit.
  EXPECT_GE(reader.series(1)->live_bytes, bytes);
  EXPECT_LE(reader.series(1)->live_bytes,
            bytes + 8 * std::max<std::uint64_t>(16 << 10, peak / 4096));
  expect_live(reader, {live.size(), bytes});
}

Writer* interrupted_writer;
GroupId interrupted_group;
volatile std::uint64_t interruptions;

TEST(ThreadShards, a_signal_handler_that_counts_in_between_loses_no_count) {
  const TemporaryFolder folder;
  Writer* const writer = interrupted_writer = make_writer(folder.path());
  const GroupId group = interrupted_group = device_group_of(*writer);
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {
    // The handler counts only, since one thread must not take a record's lock twice.
    interrupted_writer->thread_shards.count_call(HookId{0});
    interrupted_writer->incidents.failed({}, interrupted_group, {.bytes = 512}, {}, 1);
    interruptions = interruptions + 1;
  };
  interruptions = 0;
  sigaction(SIGALRM, &action, &before);
  const itimerval often{{0, 50}, {0, 50}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  std::uint64_t calls = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (interruptions < 2000 && std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 1000; ++i) writer->thread_shards.count_call(HookId{0});
    calls += 1000;
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  ASSERT_GE(interruptions, 2000u) << "the timer sends too few signals";
  const Reader reader = read(*writer);
  EXPECT_EQ(reader.hook(0)->calls, calls + interruptions);
  EXPECT_EQ(reader.group(group.value)->failures, interruptions);
}

// Seen from the child, every thread of the parent looks as if it had ended.
TEST(ThreadShards, a_vforked_child_takes_no_living_threads_number) {
  const TemporaryFolder folder;
  Writer* const writer = make_writer(folder.path());
  constexpr int others = ThreadSlot::count - 1;
  std::atomic<int> there{0}, changed{0};
  std::atomic<bool> child_was_there{false};
  std::vector<std::thread> workers;
  for (int i = 0; i < others; ++i) {
    workers.emplace_back([&] {
      const ThreadSlot before = writer->threads.slot();
      ++there;
      wait_until("the child was there", [&] { return child_was_there.load(); });
      const ThreadSlot after = writer->threads.slot();
      changed +=
          before.number == 0 || after.number != before.number || after.tenancy != before.tenancy;
    });
  }
  ASSERT_TRUE(comes_about([&] { return there == others; }));
  static ThreadSlot childs;
  childs.number = 1;
  const pid_t child = vfork();
  if (child == 0) {
    childs = writer->threads.slot();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(childs.number, 0u);
  EXPECT_EQ(writer->threads.slot().number, 0u) << "all numbers are in use";
  child_was_there = true;
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(changed, 0);
}

TEST(ThreadShards, a_thread_learns_if_another_one_is_inside_a_call_and_if_that_began_before) {
  const TemporaryFolder folder;
  Writer* const writer = make_writer(folder.path());
  ThreadShards& shards = writer->thread_shards;
  std::atomic<bool> is_inside{false}, may_end{false};
  std::thread other([&] {
    shards.call_begins(HookId{0}, 5);
    is_inside = true;
    wait_until("the call may end", [&] { return may_end.load(); });
    shards.call_ends();
  });
  wait_until("the thread is inside", [&] { return is_inside.load(); });
  EXPECT_TRUE(shards.others_in_calls());
  EXPECT_TRUE(shards.others_in_calls(6));
  EXPECT_FALSE(shards.others_in_calls(5));
  may_end = true;
  other.join();
  EXPECT_FALSE(shards.others_in_calls());
  shards.call_begins(HookId{0}, 7);
  EXPECT_FALSE(shards.others_in_calls()) << "the calling thread's own call does not count";
  shards.call_ends();
}

}  // namespace
}  // namespace cuwarden::ledger
