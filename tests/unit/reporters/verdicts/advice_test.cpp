// The settings that advice names: those that would have helped, and that were not in force.
#include "tests/unit/reporters/verdicts/verdict_case.hpp"

namespace cuwarden {
namespace {

using ledger::Asked;

class Advice : public Verdicts {
 protected:
  bool advises(std::string_view setting) const {
    return judge(given).advice.find(setting) != std::string::npos;
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
