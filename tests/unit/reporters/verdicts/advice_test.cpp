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
                 ledger::SeenBy seen_by = ledger::SeenBy::nvml) {
    given.others.add({.pid = pid,
                      .parent = 7,
                      .seen_by = seen_by,
                      .run_state = state,
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

TEST_F(Advice, a_zombie_needs_its_parent) {
  set(Fact::other_processes_bytes, 97 * GiB);
  add_other(11, RunState::zombie);
  EXPECT_EQ(advice(),
            "other processes hold 97.0 GiB of this device: pid 11 (python3, user alice) has ended, "
            "but its parent, pid 7 (bash), has not reaped it: have the parent reap it, or end the "
            "parent");
}

TEST_F(Advice, a_process_that_is_stuck_is_not_waited_for) {
  set(Fact::other_processes_bytes, 97 * GiB);
  add_other(11, RunState::stuck);
  EXPECT_TRUE(advises("pid 11 (python3, user alice) is stuck in the kernel (state D)")) << advice();
  EXPECT_TRUE(advises("waiting may not help"));
  EXPECT_FALSE(advises("CUWARDEN_WAIT"));
  add_other(12, RunState::alive);
  EXPECT_TRUE(advises("wait until pid 12 (python3, user alice) ends")) << advice();
  EXPECT_TRUE(advises("; pid 11 (python3, user alice) is stuck")) << advice();
}

TEST_F(Advice, an_owner_that_is_not_visible_is_a_case_for_the_administrator) {
  EXPECT_EQ(verdict(), "held_by_unlisted_owner");
  EXPECT_TRUE(advises("waiting may not help: ask the administrator")) << advice();
  add_other(11, RunState::alive);
  EXPECT_FALSE(advises("pid 11")) << "NVML lists it, so it is not the unlisted owner";
  add_other(12, RunState::alive, SeenBy::device_file);
  EXPECT_TRUE(advises("with the device's file open: wait until pid 12 (python3, user alice) ends"))
      << advice();
  EXPECT_FALSE(advises("pid 11"));
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
  EXPECT_TRUE(advises("python3 -m cuwarden"));
  given.modules = {{"/lib/libcache.so", 96 * GiB}};
  EXPECT_EQ(verdict(), "held_by_framework");
  EXPECT_FALSE(advises("python3 -m cuwarden"));
}

}  // namespace
}  // namespace cuwarden
