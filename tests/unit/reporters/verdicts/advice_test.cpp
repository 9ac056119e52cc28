// The settings that advice names: those that would have helped, and that were not in force.
#include "tests/unit/reporters/verdicts/verdict_case.hpp"

namespace cuwarden {
namespace {

using ledger::Asked;
using ledger::RunState;
using ledger::SeenBy;

class Advice : public Verdicts {
 protected:
  bool advises(std::string_view setting) const {
    return advice().find(setting) != std::string::npos;
  }
  std::string advice() const { return judge(given).advice; }
  // Names another process that NVML lists, or that has the device's file open.
  void add_other(std::uint32_t pid, ledger::RunState state,
                 ledger::SeenBy seen_by = ledger::SeenBy::nvml, bool of_another_user = false) {
    given.others.add({.pid = pid,
                      .parent = 7,
                      .seen_by = seen_by,
                      .run_state = state,
                      .is_of_another_user = of_another_user,
                      .program = "/opt/python3",
                      .parent_program = "bash",
                      .user = "alice"});
  }
};

TEST_F(Advice, a_full_device_is_helped_by_host_memory_for_what_is_missing) {
  live(Kind::device, 97 * GiB);
  EXPECT_EQ(verdict(), "device_full_own");
  // 6 GiB are missing, and the driver and spilling keep some.
  EXPECT_TRUE(advises("CUWARDEN_SPILL=7GiB")) << judge(given).advice;
  EXPECT_FALSE(advises("CUWARDEN_POOL"));
  given.rescues = false;
  EXPECT_TRUE(advises("CUWARDEN_POOL=auto and CUWARDEN_SPILL=7GiB")) << judge(given).advice;
  given.spills = true;
  EXPECT_TRUE(advises("set CUWARDEN_POOL=auto if")) << judge(given).advice;
  given.rescues = true;
  EXPECT_FALSE(advises("CUWARDEN_")) << judge(given).advice;
}

TEST_F(Advice, host_memory_is_no_advice_for_requests_that_are_not_spilled) {
  live(Kind::device, 97 * GiB);
  given.kind = Kind::stream_ordered;
  EXPECT_EQ(verdict(), "device_full_own");
  EXPECT_FALSE(advises("CUWARDEN_SPILL"));
  given.kind = Kind::device;
  given.incident.asked = Asked::context;
  EXPECT_FALSE(advises("CUWARDEN_SPILL"));
}

TEST_F(Advice, a_request_larger_than_the_device_is_helped_by_host_memory) {
  given.incident.bytes = 110 * GiB;
  EXPECT_EQ(verdict(), "larger_than_device");
  EXPECT_TRUE(advises("CUWARDEN_SPILL=109GiB")) << judge(given).advice;
}

TEST_F(Advice, memory_of_other_processes_is_waited_for) {
  EXPECT_EQ(verdict(), "held_by_unlisted_owner");
  EXPECT_TRUE(advises("CUWARDEN_WAIT=10m lets requests wait")) << judge(given).advice;
  set(Fact::other_processes_bytes, 97 * GiB);
  EXPECT_EQ(verdict(), "held_by_other_processes");
  EXPECT_TRUE(advises("CUWARDEN_WAIT=10m lets requests wait")) << judge(given).advice;
  given.waits = true;
  EXPECT_FALSE(advises("CUWARDEN_")) << judge(given).advice;
}

TEST_F(Advice, a_process_that_runs_is_named_and_waited_for) {
  set(Fact::other_processes_bytes, 97 * GiB);
  add_other(11, RunState::alive);
  EXPECT_EQ(verdict(), "held_by_other_processes");
  EXPECT_EQ(advice(),
            "other processes hold 97.0 GiB of this device: wait until pid 11 (python3, user alice) "
            "ends (CUWARDEN_WAIT=10m lets requests wait), end it, or use another device");
  add_other(12, RunState::unknown);
  given.waits = true;
  EXPECT_EQ(advice(),
            "other processes hold 97.0 GiB of this device: wait until pid 11 (python3, user alice) "
            "and pid 12 (python3, user alice) end, end them, or use another device");
}

TEST_F(Advice, processes_of_other_users_are_for_these_users_to_end) {
  set(Fact::other_processes_bytes, 97 * GiB);
  given.waits = true;
  add_other(11, RunState::alive, SeenBy::nvml, true);
  EXPECT_TRUE(advises("(python3, user alice) ends, ask its user to end it, or")) << advice();
  add_other(12, RunState::alive, SeenBy::nvml, true);
  EXPECT_TRUE(advises(" end, ask their users to end them, or")) << advice();
  add_other(13, RunState::alive);
  EXPECT_TRUE(advises(" end, end those that are yours, ask the users of the others")) << advice();
}

TEST_F(Advice, processes_that_are_not_named_are_counted) {
  set(Fact::other_processes_bytes, 97 * GiB);
  for (std::uint32_t pid = 11; pid <= 14; ++pid) add_other(pid, RunState::alive);
  EXPECT_TRUE(advises("pid 13 (python3, user alice) and 1 other end (")) << advice();
  add_other(15, RunState::unknown);
  EXPECT_TRUE(advises("pid 13 (python3, user alice) and 2 others end (")) << advice();
  add_other(16, RunState::stuck);
  EXPECT_TRUE(advises("; 1 process was killed but stays in the kernel")) << advice();
}

TEST_F(Advice, a_zombies_memory_may_be_kept_by_a_process_that_it_started) {
  set(Fact::other_processes_bytes, 97 * GiB);
  add_other(11, RunState::zombie);
  EXPECT_EQ(advice(),
            "other processes hold 97.0 GiB of this device: pid 11 (python3, user alice) has ended, "
            "and its own memory is gone, but a process that it started and that has the device's "
            "file open may keep memory: look for such a process, or use another device");
  add_other(12, RunState::alive, SeenBy::device_file);
  EXPECT_TRUE(advises("; pid 12 (python3, user alice) has the device's file open and may hold"))
      << advice();
  EXPECT_FALSE(advises("parent"));
  EXPECT_FALSE(advises("end it"));
}

TEST_F(Advice, a_process_that_is_stuck_is_not_waited_for) {
  set(Fact::other_processes_bytes, 97 * GiB);
  add_other(11, RunState::stuck);
  EXPECT_TRUE(advises("pid 11 (python3, user alice) was killed but stays in the kernel (state D)"))
      << advice();
  EXPECT_TRUE(advises("waiting may not help"));
  EXPECT_FALSE(advises("CUWARDEN_WAIT"));
  EXPECT_FALSE(advises("reset"));
  add_other(12, RunState::alive);
  EXPECT_TRUE(advises("wait until pid 12 (python3, user alice) ends")) << advice();
  EXPECT_TRUE(advises("; pid 11 (python3, user alice) was killed")) << advice();
}

TEST_F(Advice, an_owner_that_is_not_visible_is_a_case_for_the_administrator) {
  EXPECT_EQ(verdict(), "held_by_unlisted_owner");
  EXPECT_TRUE(advises("belong to no process that is visible here")) << advice();
  EXPECT_TRUE(advises("waiting may not help: ask the administrator")) << advice();
}

TEST_F(Advice, a_process_with_the_devices_file_open_may_hold_the_memory) {
  add_other(11, RunState::alive);
  EXPECT_FALSE(advises("pid 11")) << "NVML lists it, so it is not the unlisted owner";
  add_other(12, RunState::alive, SeenBy::device_file);
  EXPECT_TRUE(
      advises("belong to no process that NVML lists; pid 12 (python3, user alice) has the "
              "device's file open and may hold the memory"))
      << advice();
  add_other(13, RunState::alive, SeenBy::device_file, true);
  EXPECT_TRUE(advises("pid 13 (python3, user alice) have the device's file open, and one of these"))
      << advice();
  EXPECT_FALSE(advises("pid 11"));
  for (const char* harmful : {"wait", "end it", "end them", "CUWARDEN_"})
    EXPECT_FALSE(advises(harmful)) << harmful;
}

TEST_F(Advice, a_list_that_cannot_be_matched_is_not_said_to_lack_the_owner) {
  set(Fact::unmatched_processes, 2);
  EXPECT_EQ(verdict(), "held_by_unlisted_owner");
  EXPECT_TRUE(advises("NVML's list cannot be matched with the processes here, so that waiting"))
      << advice();
  add_other(12, RunState::alive, SeenBy::device_file);
  EXPECT_TRUE(advises("cannot be matched with the processes here; pid 12")) << advice();
  EXPECT_FALSE(advises("that NVML lists"));
}

TEST_F(Advice, unlisted_memory_of_a_device_without_memory_of_its_own_is_the_hosts) {
  set(Fact::integrated, 1);
  EXPECT_EQ(verdict(), "held_by_unlisted_owner");
  EXPECT_TRUE(advises("shares its memory with the host")) << advice();
}

TEST_F(Advice, a_cache_is_emptied_by_the_reclaimers_if_there_is_one_for_its_library) {
  live(Kind::device, 97 * GiB);
  given.requester = "/lib/libother.so";
  given.modules = {{"/lib/libc10_cuda.so", 96 * GiB}};
  EXPECT_EQ(verdict(), "held_by_framework");
  EXPECT_TRUE(advises("PyTorch holds 96.0 GiB, and libother.so asked for more")) << advice();
  EXPECT_TRUE(advises("`cuwarden run` has its cache emptied"));
  given.rescues = false;
  EXPECT_TRUE(advises("`cuwarden run --pool auto` has its cache emptied"));
  given.asks_frameworks = true;
  EXPECT_TRUE(advises("CUWARDEN_POOL=auto has its cache emptied"));
  given.rescues = true;
  EXPECT_FALSE(advises("has its cache emptied"));
  EXPECT_TRUE(advises("empty its cache or limit it"));
  given.modules = {{"/lib/libcache.so", 96 * GiB}};
  EXPECT_EQ(verdict(), "held_by_framework");
  EXPECT_TRUE(advises("have the library give it back"));
}

}  // namespace
}  // namespace cuwarden
