// A thread may leave the ledger with a lock held, if a signal handler of the program jumps away.
// The other threads must go on.
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "tests/comes_about.hpp"
#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden::ledger {
namespace {

sigjmp_buf outside;
void jump_outside(int) { siglongjmp(outside, 1); }

// Waits for locks in which the time runs out at once, so that a lock is given up after some hundred
// turns.
class GivenUpLockTest : public LedgerTest {
 protected:
  GivenUpLockTest() {
    waits = 0;
    FutexLock::sleep_while = [](const std::atomic<std::uint32_t>&, std::uint32_t, long) noexcept {
      ++waits;
      std::this_thread::yield();
      return false;
    };
  }
  ~GivenUpLockTest() override { FutexLock::sleep_while = FutexLock::sleep_in_kernel; }
  static inline std::atomic<int> waits{0};

  void protect_records(int protection) {
    const Region& region =
        writer->file.header().regions[static_cast<std::size_t>(RegionId::records)];
    auto* const base = const_cast<std::byte*>(writer->file.bytes().data());
    ASSERT_EQ(mprotect(base + region.offset, region.file_bytes, protection), 0);
  }
  // Adds a record whose memory is protected: the write faults while the record's shard is locked.
  void leave_with_a_lock_held(std::uint64_t address, GroupId group) {
    struct sigaction jump {
    }, before{};
    jump.sa_handler = jump_outside;
    sigaction(SIGSEGV, &jump, &before);
    // The shard gets its rows first; rows made later would lie behind the protected memory.
    add(address, 100, group);
    take(address);
    protect_records(PROT_READ);
    if (sigsetjmp(outside, 1) == 0) {
      add(address, 100, group);
      ADD_FAILURE() << "nothing was written into the records";
    }
    protect_records(PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &before, nullptr);
  }
  std::uint32_t reasons() const { return writer->file.header().reasons.load(); }
};

TEST_F(GivenUpLockTest, no_thread_waits_for_ever_for_a_lock_whose_holder_jumped_away) {
  const GroupId group = device_group();
  add(0x1000, 100, group);  // lies in another 2 MiB, and so in another shard
  leave_with_a_lock_held(0x500000, group);
  EXPECT_EQ(reasons() & reason_recording_stopped, 0u);

  std::thread([&] { add(0x500000, 200, group); }).join();
  EXPECT_GT(waits, 50) << "the lock is not given up soon";
  EXPECT_NE(reasons() & reason_recording_stopped, 0u);
  EXPECT_EQ(reasons() & reason_ledger_full, 0u);

  // Later calls do not wait again, and tables under other locks work as before.
  const int before = waits;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(take(0x500000));
  EXPECT_TRUE(take(0x1000));
  EXPECT_EQ(waits, before);
}

TEST_F(GivenUpLockTest, a_slow_holder_of_a_lock_is_waited_for) {
  static std::atomic<bool> is_slow, is_back;
  is_slow = is_back = false;
  FutexLock::sleep_while = [](const std::atomic<std::uint32_t>&, std::uint32_t, long) noexcept {
    if (++waits < 10) return false;
    is_slow = true;
    wait_until("the holder is back", [] { return is_back.load(); });
    return true;
  };
  FutexLock lock;
  ASSERT_TRUE(lock.lock());
  bool got = false;
  std::thread other([&] {
    const Locked locked(lock);
    got = static_cast<bool>(locked);
  });
  wait_until("the thread waits", [] { return is_slow.load(); });
  lock.unlock();
  is_back = true;
  other.join();
  EXPECT_TRUE(got);
}

TEST_F(GivenUpLockTest, a_lock_that_goes_from_holder_to_holder_is_never_given_up) {
  // Each holder keeps the lock for a hundred waits of up to 64 ms: less than ten seconds, but all
  // holders together keep it for a minute.
  constexpr int waits_for_all = 1000, waits_for_one = 100;
  static FutexLock lock;
  FutexLock::sleep_while = [](const std::atomic<std::uint32_t>&, std::uint32_t, long) noexcept {
    if (++waits % waits_for_one == 0) {
      lock.unlock();
      EXPECT_TRUE(waits == waits_for_all || lock.try_lock());
    }
    return false;
  };
  ASSERT_TRUE(lock.lock());
  std::thread([] { EXPECT_TRUE(Locked(lock)); }).join();
  EXPECT_EQ(waits, waits_for_all);
}

TEST_F(GivenUpLockTest, a_thread_that_jumped_out_of_a_timeline_update_is_noticed) {
  // Series lie one behind the other. The counters of the fifth one and its last bucket are on two
  // pages.
  for (const Kind kind : {Kind::pinned, Kind::managed, Kind::vmm, Kind::array})
    writer->groups.get({StackId{1}, HookId{0}, kind, DeviceOrdinal{0}});
  const GroupId group = device_group();
  add(0x1000, 100, group);
  auto* const base = const_cast<std::byte*>(writer->file.bytes().data());
  const Region& region = writer->file.header().regions[static_cast<std::size_t>(RegionId::series)];
  // The series' first page, with its counters, can be written. The page with the newest of many
  // buckets is protected.
  auto& series = *reinterpret_cast<Series*>(base + region.offset + 5 * sizeof(Series));
  auto* const bucket = reinterpret_cast<std::byte*>(&series.buckets[bucket_count - 1]);
  const auto page = reinterpret_cast<std::uintptr_t>(bucket) / page_bytes * page_bytes;
  ASSERT_EQ(series.kind, static_cast<std::uint8_t>(Kind::device));
  ASSERT_GT(page, reinterpret_cast<std::uintptr_t>(&series.buckets_used));
  struct sigaction jump {
  }, before{};
  jump.sa_handler = jump_outside;
  sigaction(SIGSEGV, &jump, &before);
  // A time whose bucket lies on the protected page.
  NewRecord record;
  record.space = Space::pointer;
  record.group = group;
  record.bytes = ByteCount{100};
  record.address = DeviceAddress{0x2000};
  record.time_ns = 239'500'000;
  mprotect(reinterpret_cast<void*>(page), page_bytes, PROT_READ);
  if (sigsetjmp(outside, 1) == 0) {
    writer->allocations.add(record);
    ADD_FAILURE() << "nothing was written into the bucket";
  }
  mprotect(reinterpret_cast<void*>(page), page_bytes, PROT_READ | PROT_WRITE);
  sigaction(SIGSEGV, &before, nullptr);
  record.address = DeviceAddress{0x3000};
  record.time_ns = 5'000'000'000;
  writer->allocations.add(record);
  EXPECT_EQ(reasons() & reason_recording_stopped, 0u);
  record.address = DeviceAddress{0x4000};
  record.time_ns = 20'000'000'000;
  writer->allocations.add(record);
  EXPECT_NE(reasons() & reason_recording_stopped, 0u);
}

TEST_F(GivenUpLockTest,
       a_thread_that_ends_the_process_waits_no_longer_than_its_budget_and_gives_up_no_lock) {
  FutexLock first, second;
  ASSERT_TRUE(first.lock());
  ASSERT_TRUE(second.lock());
  FutexLock::sleep_while = FutexLock::sleep_in_kernel;  // the budget is of the system's time
  WaitBudget budget(1'000'000);
  {
    const WaitBudget::Scope ending(&budget);
    EXPECT_FALSE(Locked(first));
    EXPECT_FALSE(Locked(second)) << "the budget is one for all locks";
    EXPECT_FALSE(Locked(first, Locked::ForLong{}));
  }
  EXPECT_EQ(budget.left_ns(), 0u);
  std::thread other([&] { EXPECT_TRUE(Locked(first)); });
  first.unlock();
  other.join();
}

TEST_F(GivenUpLockTest, a_lock_whose_holder_comes_back_is_used_again) {
  FutexLock lock;
  ASSERT_TRUE(lock.lock());
  std::thread([&] { EXPECT_FALSE(Locked(lock)); }).join();
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(Locked(lock));
}

}  // namespace
}  // namespace cuwarden::ledger
