// Verdicts from facts that a test states. Each verdict has a case that just proves it, and one that
// just does not.
#include "tests/unit/reporters/verdicts/verdict_case.hpp"

namespace cuwarden {
namespace {

using ledger::Asked;
using ledger::Fact;

TEST_F(Verdicts, without_proof_of_any_verdict_the_verdict_is_unknown) {
  EXPECT_EQ(verdict(), "held_by_unlisted_owner") << "98 GiB have no known owner";
  set(Fact::free_bytes, 93 * GiB);
  EXPECT_EQ(verdict(), "unknown");
  set(Fact::free_bytes, ledger::unknown_value);
  EXPECT_EQ(verdict(), "unknown");
  EXPECT_FALSE(judge(given).advice.empty());
}

TEST_F(Verdicts, an_absurd_size_is_the_verdict_whatever_else_is_true) {
  live(Kind::device, 98 * GiB);
  given.incident.bytes = UINT64_MAX;
  EXPECT_EQ(verdict(), "size_overflow");
  given.incident.bytes = std::uint64_t{1} << 47;
  EXPECT_EQ(verdict(), "size_overflow");
  --given.incident.bytes;
  EXPECT_EQ(verdict(), "larger_than_device");
}

TEST_F(Verdicts, a_request_of_the_whole_device_is_not_larger_than_it) {
  live(Kind::device, 98 * GiB);
  given.incident.bytes = 100 * GiB + 1;
  EXPECT_EQ(verdict(), "larger_than_device");
  EXPECT_EQ(proof("total_bytes"), 100 * GiB);
  given.incident.bytes = 100 * GiB;
  EXPECT_NE(verdict(), "larger_than_device");
}

TEST_F(Verdicts, slabs_are_to_blame_if_they_lock_the_missing_bytes) {
  live(Kind::device, 90 * GiB);
  // The missing bytes are 6 GiB, and the driver keeps a little for itself.
  set(Fact::slab_locked_bytes, 6 * GiB + 6 * MiB);
  EXPECT_EQ(verdict(), "slab_fragmentation");
  EXPECT_EQ(proof("slab_locked_bytes"), 6 * GiB + 6 * MiB);
  set(Fact::slab_locked_bytes, 6 * GiB);
  EXPECT_EQ(verdict(), "device_full_own");
  set(Fact::rounding_bytes, 7 * MiB);
  EXPECT_EQ(verdict(), "slab_fragmentation") << "together they do";
}

TEST_F(Verdicts, a_little_waste_is_not_to_blame_for_a_full_device) {
  live(Kind::device, 97 * GiB);
  set(Fact::free_bytes, 7 * MiB);
  given.incident.bytes = 3 * MiB;
  set(Fact::rounding_bytes, 100 * MiB);
  EXPECT_EQ(verdict(), "device_full_own");
  set(Fact::rounding_bytes, 3 * GiB);
  EXPECT_EQ(verdict(), "slab_fragmentation");
  // The bytes are a smaller part of the device, but enough to matter for the request.
  set(Fact::free_bytes, 2 * GiB);
  given.incident.bytes = 3 * GiB;
  live(Kind::device, 96 * GiB);
  set(Fact::rounding_bytes, 1100 * MiB);
  EXPECT_EQ(verdict(), "slab_fragmentation");
  set(Fact::free_bytes, 5 * GiB);
  given.incident.bytes = 6 * GiB;
  EXPECT_EQ(verdict(), "device_full_own");
}

TEST_F(Verdicts, frees_are_pending_if_memory_pools_kept_memory_that_the_driver_could_not_take) {
  set(Fact::memory_pool_idle_bytes, 90 * GiB);
  EXPECT_EQ(verdict(), "pending_frees");
  EXPECT_EQ(proof("pending_free_bytes"), 90 * GiB);
  set(Fact::memory_pool_idle_bytes, 6 * GiB);
  EXPECT_NE(verdict(), "pending_frees");
  // Memory of graphs beyond their allocations is idle, too, although no free is pending.
  set(Fact::graph_rest_bytes, 90 * GiB);
  EXPECT_NE(verdict(), "pending_frees");
  EXPECT_EQ(account_of(given)->of(Holder::mempool_idle), 96 * GiB);
  set(Fact::graph_rest_bytes, 0);
  // Each live allocation may keep a whole chunk.
  set(Fact::memory_pool_idle_bytes, 10 * GiB);
  live_count(128);
  EXPECT_NE(verdict(), "pending_frees");
  live_count(64);
  EXPECT_EQ(verdict(), "pending_frees");
}

TEST_F(Verdicts, a_framework_has_free_memory_in_holes_if_it_asked_itself) {
  live(Kind::device, 95 * GiB);
  set(Fact::pytorch_reserved_bytes, 94 * GiB);
  set(Fact::pytorch_allocated_bytes, 75 * GiB);
  given.requester = "/site-packages/torch/lib/libc10_cuda.so";
  EXPECT_EQ(verdict(), "framework_fragmentation");
  EXPECT_EQ(proof("idle_bytes"), 19 * GiB);
  set(Fact::pytorch_allocated_bytes, 94 * GiB);
  EXPECT_EQ(verdict(), "device_full_own") << "nothing is idle";
  set(Fact::pytorch_allocated_bytes, 75 * GiB);
  given.requester = "/bin/app";
  EXPECT_NE(verdict(), "framework_fragmentation") << "another one asked";
}

TEST_F(Verdicts, a_library_holds_the_memory_if_another_module_asked) {
  live(Kind::device, 95 * GiB);
  given.modules = {{"/lib/libcache.so", 90 * GiB}, {"/bin/app", 5 * GiB}};
  EXPECT_EQ(verdict(), "held_by_framework");
  EXPECT_EQ(proof("held_bytes"), 90 * GiB);
  given.requester = "/lib/libcache.so";
  EXPECT_EQ(verdict(), "device_full_own") << "the requester holds its own cache";
  given.requester = "/lib/other.so";
  given.modules = {{"/bin/app", 90 * GiB}, {"/lib/libcache.so", 5 * GiB}};
  EXPECT_EQ(verdict(), "device_full_own") << "the program is no framework";
  given.modules = {{"/lib/libcache.so", 5 * GiB}};
  EXPECT_EQ(verdict(), "device_full_own") << "less than was missing";
}

TEST_F(Verdicts, other_processes_hold_the_memory_if_they_hold_more_than_this_one) {
  live(Kind::device, 40 * GiB);
  set(Fact::other_processes_bytes, 57 * GiB);
  EXPECT_EQ(verdict(), "held_by_other_processes");
  EXPECT_EQ(proof("other_processes_bytes"), 57 * GiB);
  live(Kind::device, 60 * GiB);
  set(Fact::other_processes_bytes, 37 * GiB);
  EXPECT_EQ(verdict(), "device_full_own");
  live(Kind::device, 30 * GiB);
  set(Fact::other_processes_bytes, ledger::unknown_value);
  EXPECT_EQ(verdict(), "held_by_unlisted_owner");
  EXPECT_EQ(proof("unlisted_bytes"), 67 * GiB) << "98 in use, 30 own, and a context";
}

TEST_F(Verdicts, memory_opened_from_another_process_belongs_to_it_and_counts_once) {
  live(Kind::device, 20 * GiB);
  live(Kind::imported, 50 * GiB);
  set(Fact::other_processes_bytes, 78 * GiB);
  const auto account = account_of(given);
  ASSERT_TRUE(account);
  EXPECT_EQ(account->live(Kind::imported), 50 * GiB);
  EXPECT_EQ(account->of(Holder::other_processes), 28 * GiB);
  EXPECT_EQ(account->unexplained(), 0);
  EXPECT_EQ(verdict(), "held_by_other_processes");
  EXPECT_EQ(proof("opened_bytes"), 50 * GiB);
  // If other processes cannot be listed, opened memory still proves that they hold it.
  set(Fact::other_processes_bytes, ledger::unknown_value);
  EXPECT_EQ(verdict(), "held_by_other_processes");
  EXPECT_EQ(proof("opened_bytes"), 50 * GiB);
  // Opened memory counts for no more than other processes have.
  set(Fact::other_processes_bytes, 1 * GiB);
  EXPECT_EQ(account_of(given)->of(Holder::other_processes), 0u);
}

TEST_F(Verdicts, memory_that_grows_is_the_cause_although_the_contexts_take_more) {
  set(Fact::total_bytes, GiB);
  set(Fact::free_bytes, 2 * MiB);
  given.incident.bytes = 64 * MiB;
  set(Fact::context_bytes, 530 * MiB);
  live(Kind::device, 490 * MiB);
  EXPECT_EQ(verdict(), "implicit_memory");
  given.growing_bytes = 32 * MiB;
  EXPECT_EQ(verdict(), "implicit_memory") << "less than is missing";
  given.growing_bytes = 400 * MiB;
  EXPECT_EQ(verdict(), "device_full_own");
  EXPECT_EQ(proof("growing_bytes"), 400 * MiB);
}

TEST_F(Verdicts, many_contexts_are_the_cause_although_other_memory_grows) {
  set(Fact::context_bytes, 75 * GiB);
  live(Kind::device, 20 * GiB);
  given.growing_bytes = 20 * GiB;
  EXPECT_EQ(verdict(), "implicit_memory");
}

TEST_F(Verdicts, memory_that_no_allocation_asked_for_is_implicit) {
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

TEST_F(Verdicts, pinned_memory_meets_the_hosts_limits) {
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

TEST_F(Verdicts, memory_to_be_registered_may_exist_already_but_must_fit_the_machine) {
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

TEST_F(Verdicts, a_gap_is_missing_if_addresses_run_out_first) {
  given.kind = Kind::pinned;
  given.device = no_device;
  set(Fact::ram_available_bytes, 1 * GiB);  // this fact alone would be another reason
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

TEST_F(Verdicts, a_context_needs_addresses_for_all_memory) {
  given.incident.asked = Asked::context;
  given.incident.bytes = 0;
  set(Fact::total_bytes, ledger::unknown_value);
  set(Fact::free_bytes, ledger::unknown_value);
  EXPECT_EQ(verdict(), "unknown");
  set(Fact::ram_bytes, 64 * GiB);
  set(Fact::address_space_bytes, 1 * GiB);
  set(Fact::address_space_limit_bytes, 4 * GiB);
  EXPECT_EQ(verdict(), "address_space_gap");
}

TEST_F(Verdicts, without_a_reading_only_verdicts_that_need_none_are_proven) {
  set(Fact::free_bytes, ledger::unknown_value);
  EXPECT_FALSE(account_of(given).has_value());
  EXPECT_EQ(verdict(), "unknown");
  given.incident.bytes = 200 * GiB;
  EXPECT_EQ(verdict(), "larger_than_device");
  set(Fact::total_bytes, ledger::unknown_value);
  EXPECT_EQ(verdict(), "unknown");
  EXPECT_FALSE(proves("free_bytes"));
  given.incident.asked = Asked::launch;
  EXPECT_EQ(verdict(), "implicit_memory");
  EXPECT_FALSE(proves("free_bytes"));
}

TEST_F(Verdicts, without_a_context_NVML_says_how_full_the_device_is) {
  given.incident.asked = Asked::context;
  given.incident.bytes = 0;
  set(Fact::free_bytes, ledger::unknown_value);
  set(Fact::nvml_free_bytes, 636 * MiB);
  set(Fact::other_processes_bytes, 98 * GiB);
  EXPECT_EQ(verdict(), "held_by_other_processes");
  EXPECT_EQ(proof("free_bytes"), 636 * MiB);
  set(Fact::nvml_free_bytes, 646 * MiB);
  EXPECT_EQ(verdict(), "unknown") << "a context has room there";
  // There is no context yet, so addresses may be lacking.
  set(Fact::nvml_free_bytes, 100 * MiB);
  set(Fact::ram_bytes, 64 * GiB);
  set(Fact::address_space_bytes, 1 * GiB);
  set(Fact::address_space_limit_bytes, 4 * GiB);
  EXPECT_EQ(verdict(), "address_space_gap");
}

TEST_F(Verdicts, a_device_with_impossible_numbers_has_no_account) {
  set(Fact::total_bytes, 1);
  EXPECT_FALSE(account_of(given).has_value());
  EXPECT_EQ(verdict(), "larger_than_device");
  set(Fact::total_bytes, UINT64_MAX - 5);
  EXPECT_FALSE(account_of(given).has_value());
  EXPECT_EQ(verdict(), "unknown");
}

TEST_F(Verdicts, a_verdict_that_this_version_does_not_have_is_attributed_to_no_holder) {
  EXPECT_EQ(named_holders("slab_fragmentation"), NamedHolders::own_in_slabs);
  EXPECT_EQ(named_holders("a_verdict_of_a_later_version"), NamedHolders::none);
}

}  // namespace
}  // namespace cuwarden
