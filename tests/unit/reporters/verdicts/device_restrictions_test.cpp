// Verdicts on requests that the device would serve if it were not a slice, under a quota, or
// forbidden.
#include "tests/unit/reporters/verdicts/verdict_case.hpp"

namespace cuwarden {
namespace {

using ledger::Asked;
using ledger::Fact;

TEST_F(Verdicts, a_context_that_the_compute_mode_forbids_lacks_no_memory) {
  given.incident.asked = Asked::context;
  given.incident.bytes = 0;
  given.incident.result = 46;  // CUDA_ERROR_DEVICE_UNAVAILABLE
  live(Kind::device, 98 * GiB);
  for (const auto& [mode, name] : {std::pair(2, "prohibited"), {3, "exclusive_process"}}) {
    set(Fact::compute_mode, static_cast<std::uint64_t>(mode));
    EXPECT_EQ(verdict(), "device_restricted");
    EXPECT_EQ(proof_value("compute_mode"), model::ProofValue(name));
    EXPECT_FALSE(proves("requested_bytes"));
    EXPECT_NE(judge(given).advice.find("nvidia-smi -c"), std::string::npos);
  }
  set(Fact::compute_mode, 0);
  EXPECT_NE(verdict(), "device_restricted");
  set(Fact::compute_mode, ledger::unknown_value);
  EXPECT_NE(verdict(), "device_restricted");
  // If the device is full, the compute mode is not the reason.
  set(Fact::compute_mode, 3);
  set(Fact::free_bytes, 100 * MiB);
  given.incident.result = out_of_memory;
  EXPECT_EQ(verdict(), "device_full_own");
}

TEST_F(Verdicts, the_process_with_the_only_context_is_part_of_the_proof) {
  given.incident.asked = Asked::context;
  given.incident.bytes = 0;
  given.incident.result = 46;
  set(Fact::compute_mode, 3);
  EXPECT_FALSE(proves("other_processes_bytes"));
  set(Fact::other_processes_bytes, 5 * GiB);
  EXPECT_EQ(proof("other_processes_bytes"), 5 * GiB);
}

TEST_F(Verdicts, a_slice_restricts_requests_that_the_whole_device_could_serve) {
  given.slice = "Some GPU MIG 1g.10gb";
  set(Fact::total_bytes, 10 * GiB);
  given.incident.bytes = 10 * GiB + 1;
  set(Fact::whole_device_bytes, 80 * GiB);
  EXPECT_EQ(verdict(), "device_restricted");
  EXPECT_EQ(proof("total_bytes"), 10 * GiB);
  EXPECT_EQ(proof("whole_device_bytes"), 80 * GiB);
  EXPECT_EQ(proof_value("slice"), model::ProofValue(given.slice));
  given.incident.bytes = 80 * GiB;
  EXPECT_EQ(verdict(), "device_restricted");
  given.incident.bytes = 80 * GiB + 1;
  EXPECT_EQ(verdict(), "larger_than_device");
  EXPECT_EQ(proof("whole_device_bytes"), 80 * GiB);
  // A request that fits into the slice was refused for another reason.
  given.incident.bytes = 9 * GiB;
  live(Kind::device, 8 * GiB);
  EXPECT_EQ(verdict(), "device_full_own");
}

TEST_F(Verdicts, a_slice_of_a_device_of_unknown_size_is_too_small_and_called_a_slice) {
  given.slice = "Some GPU MIG 1g.10gb";
  set(Fact::total_bytes, 10 * GiB);
  given.incident.bytes = 20 * GiB;
  EXPECT_EQ(verdict(), "larger_than_device");
  EXPECT_EQ(proof_value("slice"), model::ProofValue(given.slice));
  EXPECT_NE(judge(given).advice.find("slice (MIG)"), std::string::npos);
  given.slice = "";
  EXPECT_EQ(judge(given).advice.find("slice"), std::string::npos);
}

TEST_F(Verdicts, a_quota_is_to_blame_if_enough_was_free_and_the_process_would_have_passed_it) {
  set(Fact::free_bytes, 50 * GiB);
  live(Kind::device, 12 * GiB);
  EXPECT_EQ(verdict(), "unknown");
  set(Fact::mps_limit_bytes, 20 * GiB);
  EXPECT_EQ(verdict(), "unknown") << "the request takes all of it and not more";
  set(Fact::mps_limit_bytes, 20 * GiB - 1);
  EXPECT_EQ(verdict(), "device_restricted");
  EXPECT_EQ(proof("mps_limit_bytes"), 20 * GiB - 1);
  EXPECT_EQ(proof("own_bytes"), 12 * GiB);
  EXPECT_EQ(proof("held_bytes"), 12 * GiB);
  EXPECT_EQ(proof("free_bytes"), 50 * GiB);
  set(Fact::mps_limit_bytes, 12 * GiB - 1);
  EXPECT_EQ(verdict(), "unknown")
      << "the process has more than the quota, so the quota is not enforced";
}

TEST_F(Verdicts, the_drivers_memory_for_a_process_counts_in_its_quota_and_others_memory_does_not) {
  set(Fact::free_bytes, 50 * GiB);
  set(Fact::mps_limit_bytes, 9 * GiB);
  live(Kind::imported, 30 * GiB);
  set(Fact::other_processes_bytes, 10 * GiB);
  EXPECT_EQ(verdict(), "unknown");
  set(Fact::context_bytes, 1 * GiB);
  EXPECT_EQ(verdict(), "unknown");
  set(Fact::slab_locked_bytes, 1);
  EXPECT_EQ(verdict(), "device_restricted");
  EXPECT_EQ(proof("own_bytes"), 0u);
  EXPECT_EQ(proof("held_bytes"), 1 * GiB + 1);
}

TEST_F(Verdicts, a_quota_proves_nothing_if_the_device_is_full_or_was_not_read) {
  live(Kind::device, 98 * GiB);
  set(Fact::mps_limit_bytes, 20 * GiB);
  EXPECT_EQ(verdict(), "device_full_own") << "no MPS server may be there to enforce it";
  set(Fact::free_bytes, ledger::unknown_value);
  EXPECT_EQ(verdict(), "unknown");
  set(Fact::free_bytes, 50 * GiB);
  given.kind = Kind::managed;
  EXPECT_EQ(verdict(), "unknown") << "managed memory may lie anywhere";
}

TEST_F(Verdicts, a_limit_of_the_cgroup_that_the_request_would_pass_is_to_blame) {
  given.incident.result = out_of_memory;
  set(Fact::total_bytes, 10 * GiB);  // the driver shows the limit as the device's size
  set(Fact::free_bytes, 4 * GiB);
  set(Fact::cgroup_device_limit_bytes, 10 * GiB);
  set(Fact::cgroup_device_used_bytes, 6 * GiB);
  EXPECT_EQ(verdict(), "device_restricted");
  EXPECT_EQ(proof("cgroup_device_limit_bytes"), 10 * GiB);
  EXPECT_EQ(proof("cgroup_device_used_bytes"), 6 * GiB);
  EXPECT_NE(judge(given).advice.find("nvidia-smi memory-limits"), std::string::npos);
  given.incident.bytes = 11 * GiB;
  EXPECT_EQ(verdict(), "device_restricted") << "not larger_than_device";
  given.incident.bytes = 4 * GiB;
  EXPECT_NE(verdict(), "device_restricted");
}

TEST_F(Verdicts, a_limit_of_the_cgroup_above_the_devices_size_is_no_cause) {
  given.incident.result = out_of_memory;
  set(Fact::cgroup_device_limit_bytes, 101 * GiB);
  set(Fact::cgroup_device_used_bytes, 98 * GiB);
  EXPECT_NE(verdict(), "device_restricted");
  set(Fact::cgroup_device_limit_bytes, 100 * GiB);
  EXPECT_EQ(verdict(), "device_restricted");
}

TEST_F(Verdicts, a_limit_of_the_cgroup_concerns_no_host_memory_and_no_other_error) {
  given.incident.result = out_of_memory;
  set(Fact::cgroup_device_limit_bytes, 10 * GiB);
  set(Fact::cgroup_device_used_bytes, 9 * GiB);
  EXPECT_EQ(verdict(), "device_restricted");
  given.incident.result = 999;
  EXPECT_NE(verdict(), "device_restricted");
  given.incident.result = out_of_memory;
  given.kind = Kind::pinned;
  EXPECT_NE(verdict(), "device_restricted");
  given.kind = Kind::device;
  set(Fact::cgroup_device_used_bytes, ledger::unknown_value);
  EXPECT_NE(verdict(), "device_restricted");
}

}  // namespace
}  // namespace cuwarden
