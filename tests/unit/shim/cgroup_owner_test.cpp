// The job or container that a process's cgroup names, from texts of /proc/PID/cgroup as schedulers
// and container runtimes make them.
#include "shim/probes/cgroup_owner.hpp"

#include <gtest/gtest.h>

#include <string>

namespace cuwarden::shim {
namespace {

const std::string id(64, 'a');
const std::string other_id = std::string(60, '0') + "beef";
const std::string pod_uid = "0f2b63a5-9c1d-4e83-8d7f-1234567890ab";

// Returns the owners as a text such as "job 4711".
std::string owner(const std::string& text) {
  const CgroupOwner found = owner_in_cgroup(text);
  std::string words;
  const auto add = [&](const char* what, std::string_view name) {
    if (!name.empty()) words += (words.empty() ? "" : ", ") + std::string(what) + std::string(name);
  };
  add("job ", found.job);
  add("container ", found.container);
  add("pod ", found.pod);
  add("unit ", found.unit);
  return words;
}

TEST(CgroupOwner, a_job_of_slurm_is_found_in_both_versions_of_cgroups) {
  EXPECT_EQ(owner("0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n"), "job 4711");
  EXPECT_EQ(owner("0::/system.slice/node1_slurmstepd.scope/job_12/step_batch/user\n"), "job 12");
  EXPECT_EQ(owner("9:memory:/slurm/uid_1000/job_4711/step_extern\n1:name=systemd:/\n"), "job 4711");
  EXPECT_EQ(owner("0::/../job_4711/step_0\n"), "job 4711");
}

TEST(CgroupOwner, a_folder_that_looks_like_a_job_and_is_not_slurms_is_none) {
  EXPECT_EQ(owner("0::/job_4711\n"), "");
  EXPECT_EQ(owner("0::/slurm/job_\n"), "");
  EXPECT_EQ(owner("0::/slurm/job_47x\n"), "");
}

TEST(CgroupOwner, a_container_is_found_by_its_id) {
  EXPECT_EQ(owner("0::/system.slice/docker-" + id + ".scope\n"), "container " + id);
  EXPECT_EQ(owner("4:memory:/docker/" + id + "\n"), "container " + id);
  EXPECT_EQ(owner("0::/machine.slice/libpod-" + id + ".scope/container\n"), "container " + id);
  EXPECT_EQ(owner("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id +
                  ".scope\n"),
            "container " + id);
  EXPECT_EQ(owner("0::/default/" + id + "\n"), "container " + id);
  EXPECT_EQ(owner("0::/lxc.payload.gpu-box/init.scope\n"), "container gpu-box");
  EXPECT_EQ(owner("4:memory:/lxc/gpu-box\n"), "container gpu-box");
}

TEST(CgroupOwner, the_innermost_container_counts) {
  EXPECT_EQ(owner("0::/docker/" + id + "/docker/" + other_id + "\n"), "container " + other_id);
}

TEST(CgroupOwner, the_process_that_watches_a_container_is_not_in_it) {
  EXPECT_EQ(owner("0::/machine.slice/libpod-conmon-" + id + ".scope\n"),
            "unit libpod-conmon-" + id + ".scope");
}

TEST(CgroupOwner, digits_of_another_number_are_no_id) {
  EXPECT_EQ(owner("0::/docker/" + id + "a\n"), "");
  EXPECT_EQ(owner("0::/docker/" + id.substr(1) + "\n"), "");
}

TEST(CgroupOwner, a_pod_is_found_beside_its_container) {
  std::string escaped = pod_uid;
  for (char& c : escaped)
    if (c == '-') c = '_';
  EXPECT_EQ(owner("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + escaped +
                  ".slice/cri-containerd-" + id + ".scope\n"),
            "container " + id + ", pod " + escaped);
  EXPECT_EQ(owner("3:cpu:/kubepods/besteffort/pod" + pod_uid + "/" + id + "\n"),
            "container " + id + ", pod " + pod_uid);
  EXPECT_EQ(
      owner("3:cpu:/system.slice/kubepods-pod" + escaped + ".slice:cri-containerd:" + id + "\n"),
      "container " + id + ", pod " + escaped);
  const std::string of_file(32, '7');  // a static pod's uid is a checksum
  EXPECT_EQ(owner("0::/kubepods/pod" + of_file + "\n"), "pod " + of_file);
  EXPECT_EQ(owner("0::/kubepods/podium\n"), "");
}

TEST(CgroupOwner, without_a_job_or_container_the_innermost_unit_counts) {
  EXPECT_EQ(owner("0::/user.slice/user-1000.slice/session-3.scope\n"), "unit session-3.scope");
  EXPECT_EQ(owner("0::/system.slice/ollama.service\n"), "unit ollama.service");
  EXPECT_EQ(owner("0::/system.slice/ollama.service/worker\n"), "unit ollama.service");
  EXPECT_EQ(owner("7:memory:/\n1:name=systemd:/system.slice/x.service\n"), "unit x.service");
}

TEST(CgroupOwner, the_unit_is_that_of_the_last_line_that_names_one) {
  EXPECT_EQ(owner("10:devices:/user.slice\n4:memory:/user.slice/user-1000.slice\n"
                  "1:name=systemd:/user.slice/user-1000.slice/session-2.scope\n"),
            "unit session-2.scope");
  EXPECT_EQ(owner("10:devices:/system.slice\n0::/system.slice/x.service\n"), "unit x.service");
  EXPECT_EQ(owner("1:name=systemd:/system.slice/x.service\n0::/\n"), "unit x.service");
}

TEST(CgroupOwner, a_text_that_names_no_owner_or_is_cut_gives_none) {
  EXPECT_EQ(owner(""), "");
  EXPECT_EQ(owner("0::/\n"), "");
  EXPECT_EQ(owner("nonsense\n:\n::\n"), "");
  EXPECT_EQ(owner("0::/system.slice/ollama.service"), "");
  EXPECT_EQ(owner("0::/" + std::string(300, 'x') + ".scope\n"), "");
}

TEST(CgroupOwner, a_zombies_removed_cgroup_is_read_as_any_other) {
  EXPECT_EQ(owner("0::/system.slice/ollama.service (deleted)\n"), "unit ollama.service");
}

}  // namespace
}  // namespace cuwarden::shim
