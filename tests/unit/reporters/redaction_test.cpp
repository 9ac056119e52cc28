// Texts of a report without folders, hosts and users.
#include "reporters/redaction.hpp"

#include <gtest/gtest.h>

namespace cuwarden {
namespace {

using Json = nlohmann::ordered_json;

Json report() {
  return Json::parse(R"({
    "tool": {"reasons": []},
    "process": {"program": "/home/alice/my app/train", "command_line": ["--key", "secret"],
                "host": "node"},
    "memory_cgroup": {"path": "/user.slice/user-1000.slice"},
    "job": {"job_id": "17.cluster", "rank": 3, "visible_devices": "GPU-1"},
    "settings": [], "environment": [{"name": "CUDA_HOME", "value": "/opt"}],
    "devices": [{"device": 0, "uuid": "GPU-2", "name": "node"}],
    "modules": [{"id": 1, "path": "/home/alice/my app/train"}],
    "frames": [], "stacks": []})");
}

std::string sentence(const std::string& text) { return redacted_text(report(), text); }

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

TEST(Redaction, hosts_and_users_go_where_they_are_whole_words) {
  EXPECT_EQ(sentence("cuwarden-node-17.json"), "cuwarden-host-17.json");
  EXPECT_EQ(sentence("of alice, malice and nodes"), "of user, malice and nodes");
}

TEST(Redaction, other_slashes_stay) {
  EXPECT_EQ(sentence("used / total: 3 / 4"), "used / total: 3 / 4");
  EXPECT_EQ(sentence("Big operator/(Big, Big)"), "Big operator/(Big, Big)");
}

TEST(Redaction, names_that_the_schema_or_the_program_has_stay_though_a_host_is_called_so) {
  Json given = report();
  given["frames"] = {{{"id", 1}, {"function", "tree::node::grow(int)"}, {"file", "/a/node.cpp"}}};
  redact(given);
  EXPECT_EQ(given["frames"][0]["function"], "tree::node::grow(int)");
  EXPECT_EQ(given["devices"][0]["name"], "node");
}

TEST(Redaction, a_report_keeps_what_is_nobodys) {
  Json given = report();
  redact(given);
  EXPECT_TRUE(given["process"]["host"].is_null());
  EXPECT_EQ(given["process"]["program"], "train");
  EXPECT_TRUE(given["process"]["command_line"].empty());
  EXPECT_EQ(given["memory_cgroup"]["path"], "/");
  EXPECT_TRUE(given["job"]["job_id"].is_null());
  EXPECT_EQ(given["job"]["rank"], 3);
  EXPECT_TRUE(given["job"]["visible_devices"].is_null());
  EXPECT_TRUE(given["devices"][0]["uuid"].is_null());
  EXPECT_TRUE(given["environment"].empty());
  EXPECT_EQ(given["modules"][0]["path"], "train");
  EXPECT_EQ(given["redacted"], true);
}

}  // namespace
}  // namespace cuwarden
