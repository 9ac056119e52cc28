// Threads allocate, free and pass addresses on as fast as they can, as a driver lets them. The
// ledger agrees with an independent count, and a reader beside them never sees a torn record.
#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "runtime_hooks/core/hash.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"
#include "tests/repetitions.hpp"
#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden::ledger {
namespace {

// Returns a size that belongs to the address and the turn of its allocation: a torn record would
// not fit.
std::uint64_t bytes_of(std::uint64_t address, std::uint64_t turn) {
  return turn << 20 | (hash_pair(address, turn) & 0xfffff);
}

// Hands out addresses, the most recently freed one first, so that threads reuse each other's at
// once.
class Driver {
 public:
  explicit Driver(std::uint64_t addresses) {
    for (std::uint64_t i = 1; i <= addresses; ++i) free_.push_back(i * 512);
  }
  std::uint64_t allocate() {
    const std::lock_guard locked(mutex_);
    if (free_.empty()) return 0;
    const std::uint64_t address = free_.back();
    free_.pop_back();
    return address;
  }
  void free(std::uint64_t address) {
    const std::lock_guard locked(mutex_);
    free_.push_back(address);
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t> free_;
};

// The allocations that the program holds; any thread may free a block that another one allocated.
class Program {
 public:
  void hold(std::uint64_t address, std::uint64_t bytes) {
    const std::lock_guard locked(mutex_);
    held_.emplace_back(address, bytes);
  }
  std::pair<std::uint64_t, std::uint64_t> pick(std::uint64_t random) {
    const std::lock_guard locked(mutex_);
    if (held_.empty()) return {};
    std::swap(held_[random % held_.size()], held_.back());
    const auto picked = held_.back();
    held_.pop_back();
    return picked;
  }
  std::map<std::uint64_t, std::uint64_t> all() { return {held_.begin(), held_.end()}; }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> held_;
};

Sum live_in(const Reader& reader, GroupId group) {
  Sum sum;
  for (const RecordView& record : records(reader)) {
    if (record.group != group) continue;
    ++sum.count;
    sum.bytes += record.bytes.value;
  }
  return sum;
}

// Each thread holds one block at a time, so no figure may exceed one block for each thread.
TEST(LedgerThreads, no_live_figure_and_no_peak_exceeds_the_blocks_that_threads_can_hold) {
  constexpr std::uint64_t threads = 4, block = 1 << 20;
  const std::uint64_t turns = test::repetitions(200'000, 5'000'000);
  const TemporaryFolder folder;
  Writer* const writer = make_writer(folder.path());
  const std::array<Frame, 1> frames = {0x1000};
  const GroupId group = writer->groups.get(
      {writer->stacks.intern(frames, false), HookId{0}, Kind::device, DeviceOrdinal{0}});
  std::atomic<std::uint64_t> running{threads};
  std::vector<std::thread> workers;
  for (std::uint64_t t = 1; t <= threads; ++t) {
    workers.emplace_back([&, t] {
      NewRecord record;
      record.address = DeviceAddress{t << 30};
      record.bytes = ByteCount{block};
      record.group = group;
      for (std::uint64_t turn = 0; turn < turns; ++turn) {
        writer->allocations.add(record);
        const TakenRecord taken = writer->allocations.take(Space::pointer, record.address);
        if (turn % 16 != 0) continue;
        writer->allocations.put_back(taken);
        writer->allocations.take(Space::pointer, record.address);
      }
      --running;
    });
  }
  const Reader reader = read(*writer);
  std::uint64_t most = 0, most_count = 0;
  while (running != 0) {
    const GroupView view = reader.group(group.value).value();
    most = std::max(most, view.live_bytes);
    most_count = std::max(most_count, view.live_count);
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_LE(most, threads * block);
  EXPECT_LE(most_count, threads);
  EXPECT_LE(reader.series(1)->peak_bytes, threads * block);
  expect_live(reader, {});
}

TEST(LedgerThreads, totals_and_live_table_agree_with_an_independent_count) {
  constexpr int threads = 16;
  // With the large counts: ten million allocations and as many frees.
  const std::uint64_t turns = test::repetitions(20'000, 1'350'000);
  const TemporaryFolder folder;
  Writer* const writer = make_writer(folder.path());
  Driver driver(500);
  Program program;
  std::atomic<std::uint64_t> allocations{0}, frees{0}, allocated_bytes{0}, refused{0}, failures{0};
  std::atomic<bool> done{false};

  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<std::uint64_t>(t));
      for (std::uint64_t turn = 1; turn <= turns; ++turn) {
        if (random() % 2 == 0) {
          const std::uint64_t address = driver.allocate();
          if (address == 0) continue;
          const std::array<Frame, 2> frames = {random() % 50, 0x20};
          NewRecord record;
          record.group = writer->groups.get({writer->stacks.intern(frames, false), HookId{0},
                                             static_cast<Kind>(random() % 2), DeviceOrdinal{0}});
          if (random() % 16 == 0) {
            const IncidentFacts refusal{.bytes = 512};
            writer->incidents.failed(
                writer->incidents.refused(record.group, refusal, writer->threads.mine(), 1),
                record.group, refusal, writer->threads.mine(), 2);
            ++failures;
            driver.free(address);
            continue;
          }
          record.address = DeviceAddress{address};
          record.bytes = ByteCount{bytes_of(address, turn)};
          writer->allocations.add(record);
          ++allocations;
          allocated_bytes += record.bytes.value;
          program.hold(address, record.bytes.value);
        } else {
          const auto [address, bytes] = program.pick(random());
          if (address == 0) continue;
          const TakenRecord taken =
              writer->allocations.take(Space::pointer, DeviceAddress{address});
          ASSERT_TRUE(taken);
          ASSERT_EQ(taken.fields.bytes.value, bytes);
          if (random() % 10 == 0) {
            writer->allocations.put_back(taken);
            ++refused;
            program.hold(address, bytes);
          } else {
            driver.free(address);
            ++frees;
          }
        }
      }
    });
  }
  std::uint64_t looks = 0;
  std::thread observer([&] {
    const Reader reader = read(*writer);
    while (!done) {
      for (const RecordView& record : records(reader)) {
        const std::uint64_t turn = record.bytes.value >> 20;
        ASSERT_EQ(record.bytes.value, bytes_of(record.address.value, turn)) << "torn";
        ++looks;
      }
      const GroupSums sums(reader);
      for (std::uint64_t i = 1; i < reader.rows(RegionId::series); ++i) {
        if (auto series = reader.series(i)) {
          sums.put_into(*series);
          ASSERT_LE(series->live_count, 500u + threads) << "below zero";
        }
      }
    }
  });
  for (std::thread& worker : workers) worker.join();
  done = true;
  observer.join();
  EXPECT_GT(looks, 0u);
  EXPECT_GT(refused.load(), 0u);

  const auto held = program.all();
  Sum expected;
  for (const auto& [address, bytes] : held) {
    ++expected.count;
    expected.bytes += bytes;
  }
  const Reader reader = read(*writer);
  expect_live(reader, expected);
  for (const RecordView& record : records(reader)) {
    const auto found = held.find(record.address.value);
    ASSERT_NE(found, held.end());
    EXPECT_EQ(found->second, record.bytes.value);
  }
  std::uint64_t counted_allocations = 0, counted_frees = 0, counted_bytes = 0, counted_failures = 0;
  for (std::uint64_t i = 1; i < reader.rows(RegionId::groups); ++i) {
    const auto group = reader.group(i);
    counted_allocations += group->allocations;
    counted_frees += group->frees;
    counted_bytes += group->allocated_bytes;
    counted_failures += group->failures;
    EXPECT_EQ(group->live_bytes, live_in(reader, group->id).bytes);
    EXPECT_EQ(group->live_count, live_in(reader, group->id).count);
  }
  EXPECT_EQ(counted_failures, failures.load());
  EXPECT_EQ(counted_allocations, allocations.load());
  EXPECT_EQ(counted_frees, frees.load());
  EXPECT_EQ(counted_bytes, allocated_bytes.load());
  EXPECT_EQ(reader.rows(RegionId::stacks), 51u) << "each stack once";
  EXPECT_EQ(reader.rows(RegionId::groups), 101u);
  EXPECT_EQ(reader.process().reasons, 0u);
  EXPECT_EQ(reader.rows(RegionId::threads), threads + 1u);
}

TEST(LedgerThreads, a_contexts_end_beside_frees_counts_each_allocation_once) {
  const TemporaryFolder folder;
  Writer* const writer = make_writer(folder.path());
  constexpr std::uint64_t count = 20'000;
  NewRecord record;
  record.group = writer->groups.get({StackId{1}, HookId{0}, Kind::device, DeviceOrdinal{0}});
  record.bytes = ByteCount{3};
  record.context = ContextId{9};
  record.flags = record_owned_by_context;
  for (std::uint64_t i = 1; i <= count; ++i) {
    record.address = DeviceAddress{i * 512};
    writer->allocations.add(record);
  }
  std::uint64_t freed = 0;
  std::thread other([&] {
    for (std::uint64_t i = count; i >= 1; --i) {
      const TakenRecord taken = writer->allocations.take(Space::pointer, DeviceAddress{i * 512});
      freed += taken ? 1 : 0;
    }
  });
  writer->allocations.release_context(ContextId{9});
  other.join();
  const Reader reader = read(*writer);
  expect_live(reader, {0, 0});
  EXPECT_EQ(reader.group(1)->frees, freed);
  EXPECT_EQ(reader.group(1)->released_count, count - freed);
}

}  // namespace
}  // namespace cuwarden::ledger
