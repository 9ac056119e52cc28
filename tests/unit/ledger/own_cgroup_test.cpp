// The process's own cgroup: which one is noted, and what is read from it. An end-to-end test covers
// kills by the cgroup.
#include "runtime_hooks/ledger/write/own_cgroup.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "runtime_hooks/core/files/cgroup_memory.hpp"

namespace cuwarden::ledger {
namespace {

TEST(OwnCgroup, the_noted_cgroup_lists_this_process_and_is_known_by_its_inode) {
  const OwnCgroup cgroup = own_cgroup();
  if (cgroup.path[0] == '\0') GTEST_SKIP() << "no cgroup here counts memory";
  struct stat status {};
  ASSERT_EQ(stat(cgroup.path, &status), 0);
  EXPECT_EQ(cgroup.inode, status.st_ino);
  std::ifstream members(std::string(cgroup.path) + "/cgroup.procs");
  bool listed = false;
  for (int pid = 0; members >> pid;) listed = listed || pid == getpid();
  EXPECT_TRUE(listed);

  const auto memory = read_cgroup_memory(cgroup.path, cgroup.inode);
  ASSERT_TRUE(memory);
  EXPECT_GE(memory->oom_kills, cgroup.oom_kills);
  EXPECT_FALSE(read_cgroup_memory(cgroup.path, cgroup.inode + 1)) << "another cgroup";
}

TEST(OwnCgroup, a_folder_that_is_no_cgroup_is_not_read) {
  struct stat status {};
  ASSERT_EQ(stat("/proc", &status), 0);
  EXPECT_FALSE(read_cgroup_memory("/proc", status.st_ino));
  EXPECT_FALSE(read_cgroup_memory("/sys/fs/cgroup/../../../proc", status.st_ino));
  EXPECT_FALSE(read_cgroup_memory("", 0));
}

TEST(OwnCgroup, a_file_of_several_numbers_is_read_by_their_names) {
  const char* const events = "low 1\noom 2\noom_kill 3\noom_group_kill 4\n";
  EXPECT_EQ(cgroup_number(events, "oom_kill"), 3u);
  EXPECT_EQ(cgroup_number(events, "oom_group_kill"), 4u);
  EXPECT_EQ(cgroup_number(events, "high"), std::nullopt);
  EXPECT_EQ(cgroup_number("oom_kill", "oom_kill"), std::nullopt);
  EXPECT_EQ(cgroup_number("67108864\n", {}), 67108864u);
  EXPECT_EQ(cgroup_number("67108864", {}), 67108864u);
  EXPECT_EQ(cgroup_number("max\n", {}), std::nullopt) << "no limit";
  EXPECT_EQ(cgroup_number("", {}), std::nullopt);
}

}  // namespace
}  // namespace cuwarden::ledger
