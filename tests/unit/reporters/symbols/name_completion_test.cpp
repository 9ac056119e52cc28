// A report that lacks names gets them from the files that ran, and says which it still lacks.
#include "reporters/symbols/name_completion.hpp"

#include <gtest/gtest.h>
#include <stdio.h>

#include <filesystem>
#include <string>

#include "reporters/owners/system_libraries.hpp"
#include "reporters/symbols/elf_symbols.hpp"

namespace cuwarden {
namespace {

std::string fixture() { return std::string(SYMBOL_FIXTURES) + "/symbol_fixture_pie"; }

std::string build_id_of(const std::string& path) {
  std::string text;
  for (const std::uint8_t byte : ElfFile::open(path.c_str())->build_id()) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

class NameCompletion : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(std::filesystem::exists(fixture())) << fixture() << " must be built first";
  }
};

// Returns a report with two stacks that both contain an inlined call of the fixture.
model::Report report_of(const std::string& path, const std::string& build_id) {
  FILE* const output = popen(fixture().c_str(), "r");
  unsigned long long offset = 0;
  EXPECT_EQ(std::fscanf(output, "%llu", &offset), 1);
  pclose(output);
  const auto frame = [](model::Id id, std::uint64_t at) {
    model::Frame made;
    made.id = id;
    made.module = 7;
    made.offset = at;
    return made;
  };
  model::Report report;
  report.tool.complete = false;
  report.tool.reasons = {"of records", "of names"};
  report.names = model::completeness({"of names"});
  report.process.host = "elsewhere";
  report.process.start = "2026-01-01T00:00:00.000000000Z";
  report.modules = {{7, path, model::text_or_null(build_id)}};
  report.frames = {frame(1, offset), frame(2, 1)};
  report.stacks = {{1, {1, 2}, false}, {2, {2}, false}};
  return report;
}

bool complete(model::Report& report, const Naming::FindFile& find = nullptr) {
  SymbolBudget unbound;
  Naming naming(unbound);
  if (find) naming.look_in(find);
  return complete_names(report, naming);
}

TEST_F(NameCompletion, an_inlined_call_becomes_frames_of_its_own_in_the_stacks) {
  model::Report report = report_of(fixture(), build_id_of(fixture()));
  ASSERT_TRUE(lacks_names(report));
  EXPECT_TRUE(complete(report));
  ASSERT_EQ(report.frames.size(), 3u);
  EXPECT_EQ(report.stacks[0].frames, std::vector<model::Id>({3, 1, 2}));
  EXPECT_EQ(report.stacks[1].frames, std::vector<model::Id>({2}));
  const model::Frame &outer = report.frames[0], &inner = report.frames[2];
  EXPECT_EQ(inner.id, 3u);
  EXPECT_TRUE(inner.inlined);
  EXPECT_FALSE(outer.inlined);
  EXPECT_EQ(inner.function->substr(0, 14), "fixture::inner");
  EXPECT_TRUE(outer.line);
  EXPECT_NE(outer.line, inner.line);
  EXPECT_EQ(outer.offset, inner.offset);
  EXPECT_FALSE(lacks_names(report));
  EXPECT_EQ(report.tool.reasons, std::vector<std::string>({"of records"}));
  EXPECT_FALSE(report.tool.complete);
  EXPECT_FALSE(complete(report)) << "nothing more is to be had";
}

TEST_F(NameCompletion, a_file_with_another_build_id_is_not_read) {
  model::Report report = report_of(fixture(), "00112233445566778899");
  EXPECT_TRUE(complete(report));
  EXPECT_FALSE(report.frames[0].function);
  ASSERT_EQ(report.names->reasons.size(), 1u);
  EXPECT_NE(report.names->reasons[0].find("its build id differs"), std::string::npos);
}

TEST_F(NameCompletion, a_file_without_a_build_id_is_not_read_on_another_machine) {
  model::Report report = report_of(fixture(), "");
  complete(report);
  EXPECT_FALSE(report.frames[0].function);
}

TEST_F(NameCompletion, a_name_without_a_folder_is_no_path) {
  model::Report report = report_of("symbol_fixture_pie", build_id_of(fixture()));
  complete(report);
  EXPECT_FALSE(report.frames[0].function);
  EXPECT_FALSE(report.names->complete);
  model::Report found = report_of("symbol_fixture_pie", build_id_of(fixture()));
  complete(found, [](const std::string&) { return fixture(); });
  EXPECT_TRUE(found.frames[0].function);
}

TEST_F(NameCompletion, missing_files_cost_nothing_if_the_report_has_all_names) {
  model::Report report = report_of("/nonexistent/libx.so", build_id_of(fixture()));
  report.names = model::Completeness();
  EXPECT_FALSE(complete(report));
  EXPECT_TRUE(report.names->complete);
}

TEST(SystemLibraries, system_libraries_are_known_by_their_file_names) {
  for (const char* path :
       {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/lib/libm-2.28.so",
        "/opt/conda/lib/libstdc++.so.6.0.30", "linux-vdso.so.1", "libgcc_s.so.1",
        "/usr/lib/libcuda.so.580.1", "/usr/lib/libpthread.so.0"})
    EXPECT_TRUE(is_system_library(path)) << path;
  for (const char* path : {"/opt/libcache.so", "/opt/libmine.so", "/opt/libc10_cuda.so",
                           "/bin/libc", "/home/libc.so.6/app", ""})
    EXPECT_FALSE(is_system_library(path)) << path;
}

}  // namespace
}  // namespace cuwarden
