// Verdicts from facts that a test states: each has a case at its edge, and one beside it.
#include "tests/unit/reporters/verdict_case.hpp"

namespace cuwarden {
namespace {

using ledger::Asked;
using ledger::Fact;

TEST_F(Verdicts, WithoutAnythingThatProvesOneItIsUnknown) {
  EXPECT_EQ(verdict(), "held_by_unlisted_owner") << "nobody is known to hold 98 GiB";
  set(Fact::free_bytes, 93 * GiB);
  EXPECT_EQ(verdict(), "unknown");
  set(Fact::free_bytes, ledger::unknown_bytes);
  EXPECT_EQ(verdict(), "unknown");
  EXPECT_FALSE(judge(given).advice.empty());
}

TEST_F(Verdicts, AnAbsurdSizeIsOneWhateverElseIsTrue) {
  live(Kind::device, 98 * GiB);
  given.incident.bytes = UINT64_MAX;
  EXPECT_EQ(verdict(), "size_overflow");
  given.incident.bytes = std::uint64_t{1} << 47;
  EXPECT_EQ(verdict(), "size_overflow");
  --given.incident.bytes;
  EXPECT_EQ(verdict(), "larger_than_device");
}

TEST_F(Verdicts, ARequestOfTheWholeDeviceIsNotLargerThanIt) {
  live(Kind::device, 98 * GiB);
  given.incident.bytes = 100 * GiB + 1;
  EXPECT_EQ(verdict(), "larger_than_device");
  EXPECT_EQ(proof("total_bytes"), 100 * GiB);
  given.incident.bytes = 100 * GiB;
  EXPECT_NE(verdict(), "larger_than_device");
}

TEST_F(Verdicts, SlabsAreToBlameWhereTheyLockWhatWasMissing) {
  live(Kind::device, 90 * GiB);
  // 6 GiB and what the driver keeps for itself.
  set(Fact::slab_locked_bytes, 6 * GiB + 6 * MiB);
  EXPECT_EQ(verdict(), "slab_fragmentation");
  EXPECT_EQ(proof("slab_locked_bytes"), 6 * GiB + 6 * MiB);
  set(Fact::slab_locked_bytes, 6 * GiB);
  EXPECT_EQ(verdict(), "device_full_own");
  set(Fact::rounding_bytes, 7 * MiB);
  EXPECT_EQ(verdict(), "slab_fragmentation") << "together they do";
}

TEST_F(Verdicts, ALittleWasteIsNotWhatFillsADevice) {
  live(Kind::device, 97 * GiB);
  set(Fact::free_bytes, 7 * MiB);
  given.incident.bytes = 3 * MiB;
  set(Fact::rounding_bytes, 100 * MiB);
  EXPECT_EQ(verdict(), "device_full_own");
  set(Fact::rounding_bytes, 3 * GiB);
  EXPECT_EQ(verdict(), "slab_fragmentation");
  // Less of the device, but as much as is worth something to the request.
  set(Fact::free_bytes, 2 * GiB);
  given.incident.bytes = 3 * GiB;
  live(Kind::device, 96 * GiB);
  set(Fact::rounding_bytes, 1100 * MiB);
  EXPECT_EQ(verdict(), "slab_fragmentation");
  set(Fact::free_bytes, 5 * GiB);
  given.incident.bytes = 6 * GiB;
  EXPECT_EQ(verdict(), "device_full_own");
}

TEST_F(Verdicts, FreesArePendingWherePoolsKeptWhatTheDriverCouldNotTake) {
  set(Fact::memory_pool_idle_bytes, 90 * GiB);
  EXPECT_EQ(verdict(), "pending_frees");
  EXPECT_EQ(proof("pending_free_bytes"), 90 * GiB);
  set(Fact::memory_pool_idle_bytes, 6 * GiB);
  EXPECT_NE(verdict(), "pending_frees");
  // What graphs use beyond their allocations waits for no free, and is idle all the same.
  set(Fact::graph_rest_bytes, 90 * GiB);
  EXPECT_NE(verdict(), "pending_frees");
  EXPECT_EQ(account_of(given)->of("mempool_idle"), 96 * GiB);
  set(Fact::graph_rest_bytes, 0);
  // What is live may keep a chunk each.
  set(Fact::memory_pool_idle_bytes, 10 * GiB);
  live_count(128);
  EXPECT_NE(verdict(), "pending_frees");
  live_count(64);
  EXPECT_EQ(verdict(), "pending_frees");
}

TEST_F(Verdicts, ALibraryHoldsItWhereSomebodyElseAsked) {
  live(Kind::device, 95 * GiB);
  given.modules = {{"/lib/libcache.so", 90 * GiB}, {"/bin/app", 5 * GiB}};
  EXPECT_EQ(verdict(), "held_by_framework");
  EXPECT_EQ(proof("held_bytes"), 90 * GiB);
  given.requester = "/lib/libcache.so";
  EXPECT_EQ(verdict(), "device_full_own") << "its own cache is its own";
  given.requester = "/lib/other.so";
  given.modules = {{"/bin/app", 90 * GiB}, {"/lib/libcache.so", 5 * GiB}};
  EXPECT_EQ(verdict(), "device_full_own") << "the program is no framework";
  given.modules = {{"/lib/libcache.so", 5 * GiB}};
  EXPECT_EQ(verdict(), "device_full_own") << "less than was missing";
}

TEST_F(Verdicts, OthersHoldItWhereTheyHoldMoreThanThisProcess) {
  live(Kind::device, 40 * GiB);
  set(Fact::other_processes_bytes, 57 * GiB);
  EXPECT_EQ(verdict(), "held_by_other_processes");
  EXPECT_EQ(proof("other_processes_bytes"), 57 * GiB);
  live(Kind::device, 60 * GiB);
  set(Fact::other_processes_bytes, 37 * GiB);
  EXPECT_EQ(verdict(), "device_full_own");
  live(Kind::device, 30 * GiB);
  set(Fact::other_processes_bytes, ledger::unknown_bytes);
  EXPECT_EQ(verdict(), "held_by_unlisted_owner");
  EXPECT_EQ(proof("unlisted_bytes"), 67 * GiB) << "98 in use, 30 own, and a context";
}

TEST_F(Verdicts, WhatWasOpenedOfOthersIsTheirsAndCountsOnce) {
  live(Kind::device, 20 * GiB);
  live(Kind::imported, 50 * GiB);
  set(Fact::other_processes_bytes, 78 * GiB);
  const auto account = account_of(given);
  ASSERT_TRUE(account);
  EXPECT_EQ(account->of("live_imported"), 50 * GiB);
  EXPECT_EQ(account->of("other_processes"), 28 * GiB);
  EXPECT_EQ(account->unexplained, 0);
  EXPECT_EQ(verdict(), "held_by_other_processes");
  EXPECT_EQ(proof("opened_bytes"), 50 * GiB);
  // Where nobody lists them, what was opened is known nevertheless.
  set(Fact::other_processes_bytes, ledger::unknown_bytes);
  EXPECT_EQ(verdict(), "held_by_other_processes");
  EXPECT_EQ(proof("opened_bytes"), 50 * GiB);
  // Of what is opened and not theirs there is no more than they have.
  set(Fact::other_processes_bytes, 1 * GiB);
  EXPECT_EQ(account_of(given)->of("other_processes"), 0u);
}

TEST_F(Verdicts, WhatNoAllocationAskedForIsImplicit) {
  live(Kind::device, 90 * GiB);
  for (const Asked asked : {Asked::launch, Asked::module, Asked::stream, Asked::limit}) {
    given.incident.asked = asked;
    given.incident.bytes = 0;
    set(Fact::local_memory_bytes, 4 * GiB);
    EXPECT_EQ(verdict(), "implicit_memory");
    EXPECT_EQ(proof("local_memory_bytes"), 4 * GiB);
  }
  given.incident.asked = Asked::memory;
  given.incident.bytes = 8 * GiB;
  EXPECT_EQ(verdict(), "device_full_own");
  live(Kind::device, 2 * GiB);
  set(Fact::local_memory_bytes, 94 * GiB);
  EXPECT_EQ(verdict(), "implicit_memory");
}

TEST_F(Verdicts, PinnedMemoryMeetsTheHostsLimits) {
  given.kind = Kind::pinned;
  given.device = no_device;
  given.incident.bytes = 8 * GiB;
  EXPECT_EQ(verdict(), "unknown");
  set(Fact::ram_available_bytes, 8 * GiB);
  EXPECT_EQ(verdict(), "unknown");
  set(Fact::ram_available_bytes, 8 * GiB - 1);
  EXPECT_EQ(verdict(), "host_ram_exhausted");
  set(Fact::ram_available_bytes, 100 * GiB);
  set(Fact::cgroup_limit_bytes, 10 * GiB);
  set(Fact::cgroup_used_bytes, 2 * GiB);
  EXPECT_EQ(verdict(), "unknown");
  set(Fact::cgroup_used_bytes, 2 * GiB + 1);
  EXPECT_EQ(verdict(), "host_ram_exhausted");
  set(Fact::cgroup_limit_bytes, ledger::no_limit);
  EXPECT_EQ(verdict(), "unknown");
  set(Fact::overcommit_mode, 2);
  set(Fact::commit_limit_bytes, 50 * GiB);
  set(Fact::committed_bytes, 43 * GiB);
  EXPECT_EQ(verdict(), "host_ram_exhausted");
  set(Fact::overcommit_mode, 0);
  EXPECT_EQ(verdict(), "unknown");
}

TEST_F(Verdicts, WhatIsRegisteredMayBeThereAlreadyButMustFitTheMachine) {
  given.kind = Kind::registered;
  given.device = no_device;
  given.incident.bytes = 8 * GiB;
  set(Fact::ram_available_bytes, 1 * GiB);
  set(Fact::cgroup_limit_bytes, 2 * GiB);
  set(Fact::cgroup_used_bytes, 2 * GiB);
  set(Fact::ram_bytes, 8 * GiB);
  EXPECT_EQ(verdict(), "unknown");
  set(Fact::ram_bytes, 8 * GiB - 1);
  EXPECT_EQ(verdict(), "host_ram_exhausted");
  EXPECT_EQ(proof("ram_bytes"), 8 * GiB - 1);
}

TEST_F(Verdicts, AGapIsMissingWhereAddressesRunOutFirst) {
  given.kind = Kind::pinned;
  given.device = no_device;
  set(Fact::ram_available_bytes, 1 * GiB);  // would be a reason too
  set(Fact::largest_gap_bytes, 8 * GiB);
  EXPECT_EQ(verdict(), "host_ram_exhausted");
  set(Fact::largest_gap_bytes, 8 * GiB - 1);
  EXPECT_EQ(verdict(), "address_space_gap");
  set(Fact::largest_gap_bytes, 100 * GiB);
  set(Fact::address_space_limit_bytes, ledger::no_limit);
  set(Fact::address_space_bytes, 30 * GiB);
  EXPECT_EQ(verdict(), "host_ram_exhausted");
  set(Fact::address_space_limit_bytes, 37 * GiB);
  EXPECT_EQ(verdict(), "address_space_gap");
  set(Fact::address_space_limit_bytes, 38 * GiB);
  EXPECT_EQ(verdict(), "host_ram_exhausted");
  set(Fact::mappings, 65520);
  set(Fact::max_mappings, 65530);
  EXPECT_EQ(verdict(), "address_space_gap");
}

TEST_F(Verdicts, AContextNeedsAddressesForAllMemory) {
  given.incident.asked = Asked::context;
  given.incident.bytes = 0;
  set(Fact::total_bytes, ledger::unknown_bytes);
  set(Fact::free_bytes, ledger::unknown_bytes);
  EXPECT_EQ(verdict(), "unknown");
  set(Fact::ram_bytes, 64 * GiB);
  set(Fact::address_space_bytes, 1 * GiB);
  set(Fact::address_space_limit_bytes, 4 * GiB);
  EXPECT_EQ(verdict(), "address_space_gap");
}

TEST_F(Verdicts, WithoutAReadingOnlyWhatNeedsNoneIsProven) {
  set(Fact::free_bytes, ledger::unknown_bytes);
  EXPECT_FALSE(account_of(given).has_value());
  EXPECT_EQ(verdict(), "unknown");
  given.incident.bytes = 200 * GiB;
  EXPECT_EQ(verdict(), "larger_than_device");
  set(Fact::total_bytes, ledger::unknown_bytes);
  EXPECT_EQ(verdict(), "unknown");
  EXPECT_FALSE(proves("free_bytes"));
  given.incident.asked = Asked::launch;
  EXPECT_EQ(verdict(), "implicit_memory");
  EXPECT_FALSE(proves("free_bytes"));
}

TEST_F(Verdicts, WithoutAContextNVMLSaysHowFullTheDeviceIs) {
  given.incident.asked = Asked::context;
  given.incident.bytes = 0;
  set(Fact::free_bytes, ledger::unknown_bytes);
  set(Fact::nvml_free_bytes, 636 * MiB);
  set(Fact::other_processes_bytes, 98 * GiB);
  EXPECT_EQ(verdict(), "held_by_other_processes");
  EXPECT_EQ(proof("free_bytes"), 636 * MiB);
  set(Fact::nvml_free_bytes, 646 * MiB);
  EXPECT_EQ(verdict(), "unknown") << "a context has room there";
  // There is none yet, so that it may be the addresses that lack.
  set(Fact::nvml_free_bytes, 100 * MiB);
  set(Fact::ram_bytes, 64 * GiB);
  set(Fact::address_space_bytes, 1 * GiB);
  set(Fact::address_space_limit_bytes, 4 * GiB);
  EXPECT_EQ(verdict(), "address_space_gap");
}

TEST_F(Verdicts, ADeviceThatSaysWhatCannotBeHasNoAccount) {
  set(Fact::total_bytes, 1);
  EXPECT_FALSE(account_of(given).has_value());
  EXPECT_EQ(verdict(), "larger_than_device");
  set(Fact::total_bytes, UINT64_MAX - 5);
  EXPECT_FALSE(account_of(given).has_value());
  EXPECT_EQ(verdict(), "unknown");
}

}  // namespace
}  // namespace cuwarden
