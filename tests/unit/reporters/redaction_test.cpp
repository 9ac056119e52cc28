// Redaction removes folders, hosts and users from the texts of a report.
#include "reporters/model/redaction.hpp"

#include <gtest/gtest.h>

namespace cuwarden {
namespace {

model::Report report_with_names() {
  model::Report given;
  given.process.program = "/home/alice/my app/train";
  given.process.command_line = {"--key", "secret"};
  given.process.host = "node";
  given.memory_cgroup.emplace().path = "/user.slice/user-1000.slice";
  given.job.job_id = "17.cluster";
  given.job.rank = 3;
  given.job.visible_devices = "GPU-1";
  given.environment = {{"CUDA_HOME", "/opt"}};
  given.devices.emplace_back().uuid = "GPU-2";
  given.devices.back().name = "node";
  given.modules = {{1, "/home/alice/my app/train", {}}};
  return given;
}

std::string sentence(const std::string& text) { return redacted_text(report_with_names(), text); }

TEST(Redaction, a_path_in_a_sentence_is_its_files_name) {
  EXPECT_EQ(sentence("cannot read /scratch/x/lib.so: gone"), "cannot read lib.so: gone");
  EXPECT_EQ(sentence("'../src/a.cpp' and (src/b.cpp)"), "'a.cpp' and (b.cpp)");
  EXPECT_EQ(sentence("debug:/var/log/x.log"), "x.log");
}

TEST(Redaction, a_folder_in_a_sentence_has_no_name) {
  EXPECT_EQ(sentence("the folder /scratch/project is full"), "the folder (path) is full");
  EXPECT_EQ(sentence("/scratch/project/"), "(path)");
}

TEST(Redaction, a_known_file_may_have_blanks_in_its_path) {
  EXPECT_EQ(sentence("functions of /home/alice/my app/train may lack lines"),
            "functions of train may lack lines");
}

TEST(Redaction, host_and_user_names_are_removed_as_whole_words) {
  EXPECT_EQ(sentence("cuwarden-node-17.json"), "cuwarden-host-17.json");
  EXPECT_EQ(sentence("of alice, malice and nodes"), "of user, malice and nodes");
}

TEST(Redaction, locations_and_patterns_of_libraries_name_no_user_and_no_folder) {
  model::Report given = report_with_names();
  given.leak_groups.emplace_back().where = "/home/alice/proj/alice_train.py:41 in step";
  given.frames.emplace_back().library = "alice_*";
  redact(given);
  EXPECT_EQ(given.leak_groups[0].where, "user_train.py:41 in step");
  EXPECT_EQ(given.frames[0].library, "user_*");
}

TEST(Redaction, other_slashes_stay) {
  EXPECT_EQ(sentence("used / total: 3 / 4"), "used / total: 3 / 4");
  EXPECT_EQ(sentence("Big operator/(Big, Big)"), "Big operator/(Big, Big)");
}

TEST(Redaction, names_of_the_schema_or_the_program_stay_though_a_host_has_the_same_name) {
  model::Report given = report_with_names();
  given.frames.emplace_back().function = "tree::node::grow(int)";
  given.frames.back().file = "/a/node.cpp";
  redact(given);
  EXPECT_EQ(given.frames[0].function, "tree::node::grow(int)");
  EXPECT_EQ(given.devices[0].name, "node");
}

TEST(Redaction, other_processes_keep_their_pids_and_bytes_alone) {
  model::Report given = report_with_names();
  model::DeviceProcess other;
  other.pid = 42;
  other.used_bytes = 100;
  other.state = "zombie";
  other.seen_by = "nvml";
  other.program = "/opt/secret/simulate";
  other.user = "bob";
  other.start = "2026-01-31T12:00:00.000000000Z";
  other.job = "17";
  other.container = "feed";
  other.pod = "0f2b";
  other.unit = "bobs.service";
  other.parent = 7;
  other.parent_program = "launcher";
  given.device_processes = {other};
  given.incidents.emplace_back().advice =
      "pid 42 (simulate, user bob) has ended, but its parent, pid 7 (launcher), has not reaped it; "
      "simulate";
  EXPECT_EQ(redacted_text(given, "wait until pid 42 (simulate, user bob) ends"),
            "wait until pid 42 ends");
  redact(given);
  EXPECT_EQ(given.incidents[0].advice,
            "pid 42 has ended, but its parent, pid 7, has not reaped it; simulate");
  model::DeviceProcess left;
  left.pid = 42;
  left.used_bytes = 100;
  left.state = "zombie";
  left.seen_by = "nvml";
  left.parent = 7;
  EXPECT_TRUE(given.device_processes[0] == left);
}

TEST(Redaction, a_report_keeps_texts_that_name_no_host_user_or_folder) {
  model::Report given = report_with_names();
  redact(given);
  EXPECT_FALSE(given.process.host);
  EXPECT_EQ(given.process.program, "train");
  EXPECT_TRUE(given.process.command_line.empty());
  EXPECT_EQ(given.memory_cgroup->path, "/");
  EXPECT_FALSE(given.job.job_id);
  EXPECT_EQ(given.job.rank, 3u);
  EXPECT_FALSE(given.job.visible_devices);
  EXPECT_FALSE(given.devices[0].uuid);
  EXPECT_TRUE(given.environment.empty());
  EXPECT_EQ(given.modules[0].path, "train");
  EXPECT_TRUE(given.redacted);
}

}  // namespace
}  // namespace cuwarden
