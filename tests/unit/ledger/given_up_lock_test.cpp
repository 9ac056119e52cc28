// A thread may leave the ledger with a lock held: the host's signal handler jumps away. The others
// must get on.
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <chrono>
#include <thread>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/mapping.hpp"
#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden::ledger {
namespace {

using Clock = std::chrono::steady_clock;

sigjmp_buf outside;
void jump_outside(int) { siglongjmp(outside, 1); }

class GivenUpLockTest : public LedgerTest {
 protected:
  void protect_records(int protection) {
    const Region& region = writer->header().regions[static_cast<std::size_t>(RegionId::records)];
    auto* const base = const_cast<std::byte*>(writer->bytes().data());
    ASSERT_EQ(mprotect(base + region.offset, region.file_bytes, protection), 0);
  }
  // The write into the record faults, with its shard locked.
  void leave_with_a_lock_held(std::uint64_t address, GroupId group) {
    struct sigaction jump {
    }, before{};
    jump.sa_handler = jump_outside;
    sigaction(SIGSEGV, &jump, &before);
    // Its shard has rows already: those of new ones would lie behind what is protected.
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
  std::uint32_t reasons() const { return writer->header().reasons.load(); }
};

TEST_F(GivenUpLockTest, NobodyWaitsForEverForALockWhoseHolderJumpedAway) {
  const GroupId group = device_group();
  add(0x1000, 100, group);
  leave_with_a_lock_held(0x5000, group);
  EXPECT_EQ(reasons() & reason_recording_stopped, 0u);

  const auto start = Clock::now();
  std::thread([&] { add(0x5000, 200, group); }).join();
  EXPECT_GT(Clock::now() - start, std::chrono::seconds(2));
  EXPECT_NE(reasons() & reason_recording_stopped, 0u);
  EXPECT_EQ(reasons() & reason_ledger_full, 0u);

  // Who comes later does not wait again, and what other locks guard is as it was.
  const auto later = Clock::now();
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(take(0x5000));
  EXPECT_TRUE(take(0x1000));
  EXPECT_LT(Clock::now() - later, std::chrono::seconds(2));
}

TEST_F(GivenUpLockTest, AHolderThatIsOnlySlowIsWaitedFor) {
  FutexLock lock;
  ASSERT_TRUE(lock.lock());
  std::atomic<bool> got{false};
  std::thread other([&] {
    const Locked locked(lock);
    got = static_cast<bool>(locked);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(350));
  lock.unlock();
  other.join();
  EXPECT_TRUE(got);
}

TEST_F(GivenUpLockTest, ALockWhoseHolderComesBackAfterAllIsUsedAgain) {
  FutexLock lock;
  ASSERT_TRUE(lock.lock());
  std::thread([&] { EXPECT_FALSE(Locked(lock)); }).join();
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(Locked(lock));
}

}  // namespace
}  // namespace cuwarden::ledger
