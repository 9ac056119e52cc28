// The cgroup limit that leaves a process the least room: in made-up cgroups, and in the real one.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime_hooks/core/files/cgroup_memory.hpp"
#include "runtime_hooks/ledger/write/own_cgroup.hpp"
#include "shim/probes/host_limits.hpp"

namespace cuwarden::shim {
namespace {

// Nested made-up cgroups, innermost first. Each level has the files that a test gives it.
class MadeUpCgroup {
 public:
  using Files = std::map<std::string, std::string>;
  MadeUpCgroup(bool version_2, std::vector<Files> levels)
      : version_2_(version_2), levels_(std::move(levels)) {}
  bool is_version_2() const { return version_2_; }
  std::optional<std::uint64_t> number(const char* file, std::string_view key = {}) const {
    const auto found = levels_[at_].find(file);
    return found == levels_[at_].end() ? std::nullopt : cgroup_number(found->second, key);
  }
  bool go_up() {
    if (at_ + 1 == levels_.size()) return false;
    ++at_;
    return true;
  }

 private:
  bool version_2_;
  std::vector<Files> levels_;
  std::size_t at_ = 0;
};

TEST(Cgroup, the_limit_that_leaves_the_least_room_is_read_with_the_bytes_used_there) {
  MadeUpCgroup cgroup(true, {{{"memory.max", "1000\n"}, {"memory.current", "100\n"}},
                             {{"memory.max", "5000\n"}, {"memory.current", "4900\n"}},
                             {{"memory.max", "max\n"}, {"memory.current", "9000\n"}},
                             {}});
  const CgroupRoom room = tightest_cgroup(cgroup);
  EXPECT_EQ(room.limit_bytes, 5000u);
  EXPECT_EQ(room.used_bytes, 4900u);
}

TEST(Cgroup, memory_that_the_kernel_can_read_again_is_read_apart) {
  const char* const stat = "anon 300\ninactive_file 40\nactive_file 500\nunevictable 7\n";
  MadeUpCgroup second(
      true, {{{"memory.max", "1000\n"}, {"memory.current", "900\n"}, {"memory.stat", stat}}});
  EXPECT_EQ(tightest_cgroup(second).cache_bytes, 540u);
  const char* const old_stat =
      "cache 1\ninactive_file 2\nactive_file 3\ntotal_inactive_file 60\ntotal_active_file 70\n";
  MadeUpCgroup first(false, {{{"memory.limit_in_bytes", "1000\n"},
                              {"memory.usage_in_bytes", "900\n"},
                              {"memory.stat", old_stat}}});
  EXPECT_EQ(tightest_cgroup(first).cache_bytes, 130u);
  MadeUpCgroup without(true, {{{"memory.max", "1000\n"}, {"memory.current", "900\n"}}});
  EXPECT_EQ(tightest_cgroup(without).cache_bytes, 0u);
}

TEST(Cgroup, an_exceeded_limit_leaves_no_room) {
  MadeUpCgroup cgroup(true, {{{"memory.max", "1000\n"}, {"memory.current", "1200\n"}},
                             {{"memory.max", "5000\n"}, {"memory.current", "4999\n"}}});
  EXPECT_EQ(tightest_cgroup(cgroup).used_bytes, 1200u);
}

TEST(Cgroup, without_any_limit_the_processs_own_cgroup_is_read) {
  MadeUpCgroup second(true, {{{"memory.max", "max\n"}, {"memory.current", "700\n"}},
                             {{"memory.current", "9000\n"}}});
  const CgroupRoom of_second = tightest_cgroup(second);
  EXPECT_EQ(of_second.limit_bytes, std::nullopt);
  EXPECT_EQ(of_second.used_bytes, 700u);
  MadeUpCgroup first(false, {{{"memory.limit_in_bytes", "9223372036854771712\n"},
                              {"memory.usage_in_bytes", "700\n"}}});
  const CgroupRoom room = tightest_cgroup(first);
  EXPECT_EQ(room.limit_bytes, std::nullopt) << "version 1 has a number for none";
  EXPECT_EQ(room.used_bytes, 700u);
}

TEST(Cgroup, numbers_that_do_not_fit_are_unknown) {
  EXPECT_EQ(cgroup_number("18446744073709551615\n", {}), UINT64_MAX);
  EXPECT_EQ(cgroup_number("18446744073709551616\n", {}), std::nullopt);
  MadeUpCgroup cgroup(true, {{{"memory.max", "99999999999999999999999\n"}}});
  EXPECT_EQ(tightest_cgroup(cgroup).limit_bytes, std::nullopt);
  EXPECT_EQ(tightest_cgroup(cgroup).used_bytes, std::nullopt);
}

TEST(Cgroup, the_cgroup_of_this_process_is_read) {
  const ledger::OwnCgroup own = ledger::own_cgroup();
  const HostLimits limits = read_host_limits();
  if (own.path[0] == '\0') {
    EXPECT_EQ(limits.cgroup_limit_bytes, HostLimits::unknown);
    EXPECT_EQ(limits.cgroup_used_bytes, HostLimits::unknown);
    GTEST_SKIP() << "no cgroup here counts memory";
  }
  EXPECT_NE(limits.cgroup_limit_bytes, HostLimits::unknown) << own.path;
  EXPECT_GT(limits.cgroup_used_bytes, std::uint64_t{1} << 20) << own.path;
  EXPECT_NE(limits.cgroup_used_bytes, HostLimits::unknown) << own.path;
  EXPECT_FALSE(read_cgroup_room(own.path, own.inode + 1)) << "another cgroup";
  EXPECT_FALSE(read_cgroup_room("/proc", 1)) << "no cgroup";
}

}  // namespace
}  // namespace cuwarden::shim
