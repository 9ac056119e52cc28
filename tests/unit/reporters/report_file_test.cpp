// A report file is whole or does not exist, is private, and never replaces another file.
#include "reporters/reports/report_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/reporters/sample_ledger.hpp"

namespace cuwarden {
namespace {

namespace fs = std::filesystem;

ReportOptions quick() {
  ReportOptions options;
  options.symbolise = false;
  return options;
}

class ReportFiles : public testing::Test {
 protected:
  ReportFiles() {
    test::fill_sample(ledger);
    std::string pattern = fs::temp_directory_path() / "report-file-XXXXXX";
    folder = mkdtemp(pattern.data());
  }
  ~ReportFiles() override { fs::remove_all(folder); }

  std::string at(const char* name) const { return folder / name; }
  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static bool is_whole(const std::string& path) { return nlohmann::json::accept(content(path)); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }
  // Runs `body` in a child, so that limits and user ids end with it. Returns the child's status.
  template <class Body>
  static int in_child(const Body& body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  test::FakeLedger ledger;
  fs::path folder;
};

TEST_F(ReportFiles, missing_folders_are_made_and_the_file_is_private) {
  const mode_t before = umask(0);
  ReportFile file(at("a/b/report.json"));
  const bool written = file.write(ledger.reader(), quick());
  umask(before);
  ASSERT_TRUE(written) << file.error();
  EXPECT_EQ(file.path(), at("a/b/report.json"));
  EXPECT_TRUE(is_whole(file.path()));
  EXPECT_EQ(fs::status(file.path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(ReportFiles, a_strict_umask_does_not_hide_the_report_from_its_owner) {
  const mode_t before = umask(0777);
  ReportFile file(at("report.json"));
  const bool written = file.write(ledger.reader(), quick());
  umask(before);
  ASSERT_TRUE(written) << file.error();
  EXPECT_EQ(fs::status(file.path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(ReportFiles, an_existing_file_is_left_alone) {
  std::ofstream(at("report.json")) << "mine";
  std::ofstream(at("report.1.json")) << "mine too";
  ReportFile file(at("report.json"));
  ASSERT_TRUE(file.write(ledger.reader(), quick())) << file.error();
  EXPECT_EQ(file.path(), at("report.2.json"));
  EXPECT_EQ(content(at("report.json")), "mine");
  EXPECT_EQ(content(at("report.1.json")), "mine too");
}

TEST_F(ReportFiles, a_free_number_is_found_among_thousands) {
  std::ofstream(at("ci.json"));
  for (int i = 1; i < 3000; ++i) std::ofstream(at(("ci." + std::to_string(i) + ".json").c_str()));
  ReportFile file(at("ci.json"));
  ASSERT_TRUE(file.write(ledger.reader(), quick())) << file.error();
  EXPECT_EQ(file.path(), at("ci.3000.json"));
  EXPECT_EQ(file.number(), 3000u);
}

TEST_F(ReportFiles, a_name_that_is_too_long_is_shortened_and_keeps_its_end) {
  const std::string wanted = at((std::string(400, 'x') + "-host-4711.json").c_str());
  std::string paths[2];
  for (std::string& path : paths) {
    ReportFile file(wanted);
    ASSERT_TRUE(file.write(ledger.reader(), quick())) << file.error();
    path = file.path();
    EXPECT_TRUE(is_whole(path));
    ASSERT_TRUE(file.write(ledger.reader(), quick())) << file.error();
  }
  EXPECT_TRUE(paths[0].ends_with("-host-4711.json")) << paths[0];
  EXPECT_TRUE(paths[1].ends_with("-host-4711.1.json")) << paths[1];
  EXPECT_EQ(files(), 2u);
}

TEST_F(ReportFiles, the_second_write_replaces_the_first) {
  ReportFile file(at("report.json"));
  ASSERT_TRUE(file.write(ledger.reader(), quick()));
  const std::string first = content(file.path());
  ReportOptions with_symbols;
  ASSERT_TRUE(file.write(ledger.reader(), with_symbols)) << file.error();
  EXPECT_EQ(file.path(), at("report.json"));
  EXPECT_NE(content(file.path()), first);
  ASSERT_TRUE(file.write(ledger.reader(), quick())) << file.error();
  EXPECT_EQ(files(), 1u);
}

TEST_F(ReportFiles, a_file_that_took_the_path_meanwhile_is_not_replaced) {
  ReportFile file(at("report.json"));
  ASSERT_TRUE(file.write(ledger.reader(), quick()));
  fs::rename(file.path(), at("kept.json"));
  std::ofstream(at("report.json")) << "another's";
  ASSERT_TRUE(file.write(ledger.reader(), quick())) << file.error();
  EXPECT_EQ(file.path(), at("report.1.json"));
  EXPECT_EQ(content(at("report.json")), "another's");
}

TEST_F(ReportFiles, a_symbolic_link_is_never_written_through) {
  fs::create_symlink(at("elsewhere"), at("report.json"));
  ReportFile file(at("report.json"));
  ASSERT_TRUE(file.write(ledger.reader(), quick())) << file.error();
  EXPECT_EQ(file.path(), at("report.1.json"));
  EXPECT_FALSE(fs::exists(at("elsewhere")));
}

TEST_F(ReportFiles, processes_with_one_path_get_a_whole_file_each) {
  constexpr int processes = 8;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      ReportFile file(at("report.json"));
      _exit(file.write(ledger.reader(), quick()) && file.write(ledger.reader(), quick()) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files(), static_cast<std::size_t>(processes));
  for (const auto& entry : fs::directory_iterator(folder)) {
    EXPECT_TRUE(is_whole(entry.path())) << entry.path();
  }
}

TEST_F(ReportFiles, a_folder_that_cannot_be_written_gives_one_line_of_error) {
  fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_exec);
  EXPECT_EQ(in_child([&] {
              // Root may write everywhere, so the child becomes another user.
              if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) return 3;
              ReportFile file(at("report.json"));
              if (file.write(ledger.reader(), quick())) return 1;
              const std::string& error = file.error();
              return error.find("permission denied") != error.npos &&
                             error.find("CUWARDEN_REPORT") != error.npos &&
                             error.find('\n') == error.npos
                         ? 0
                         : 2;
            }),
            0);
  fs::permissions(folder, fs::perms::owner_all);
  EXPECT_EQ(files(), 0u);
}

TEST_F(ReportFiles, a_path_below_a_file_gives_one_line_of_error) {
  std::ofstream(at("file")) << "x";
  ReportFile file(at("file/report.json"));
  EXPECT_FALSE(file.write(ledger.reader(), quick()));
  EXPECT_NE(file.error().find("not a folder"), std::string::npos) << file.error();
}

TEST_F(ReportFiles, a_file_size_limit_is_an_error_and_not_a_signal) {
  EXPECT_EQ(in_child([&] {
              const rlimit limit{1000, 1000};
              setrlimit(RLIMIT_FSIZE, &limit);
              ReportFile file(at("report.json"));
              if (file.write(ledger.reader(), quick())) return 1;
              return file.error().find("file size limit") != std::string::npos ? 0 : 2;
            }),
            0);
  EXPECT_EQ(files(), 0u) << "nothing is left behind";
}

TEST_F(ReportFiles, a_failed_second_write_leaves_the_first) {
  ReportFile file(at("report.json"));
  ASSERT_TRUE(file.write(ledger.reader(), quick()));
  EXPECT_EQ(in_child([&] {
              const rlimit limit{1000, 1000};
              setrlimit(RLIMIT_FSIZE, &limit);
              return file.write(ledger.reader(), ReportOptions{}) ? 1 : 0;
            }),
            0);
  EXPECT_TRUE(is_whole(at("report.json")));
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace cuwarden
