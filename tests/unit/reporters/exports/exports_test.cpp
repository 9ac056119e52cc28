// The formats of `cuwarden export`, with names that mean something in a format.
#include "reporters/exports/exports.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "reporters/tables/ledger_report.hpp"
#include "tests/unit/reporters/sample_ledger.hpp"

namespace cuwarden {
namespace {

ExportedLeaks hostile_leaks() {
  ExportedLeaks exported;
  exported.leaks["00000000000000ab"] = {.kind = "device",
                                        .api = "cudaMalloc",
                                        .count = 3,
                                        .bytes = 3 << 20,
                                        .caller = "f<\"a\" & b> in app",
                                        .where = "a,b:c%.cpp:41 in f",
                                        .file = "/src/a,b:c%.cpp",
                                        .line = 41,
                                        .stack = "       #0  <script>\xef\xbf\xbf\n"};
  exported.leaks["00000000000000cd"] = {.kind = "stream", .count = 1, .bytes = 4096};
  FingerprintedLeak& known = exported.known["00000000000000cd"];
  known.count = 1;
  known.bytes = 1024;
  return exported;
}

TEST(Exports, as_annotations_have_a_line_for_each_leak) {
  EXPECT_EQ(exports::github(hostile_leaks()),
            "::error file=/src/a%2Cb%3Ac%25.cpp,line=41,title=GPU memory leak "
            "00000000000000ab::3.0 MiB in 3 allocations never freed (cudaMalloc): "
            "a,b:c%25.cpp:41 in f\n"
            "::notice title=GPU memory leak 00000000000000cd::known, but grown from 1.0 KiB in 1 "
            "stream: 4.0 KiB in 1 stream never freed\n");
  EXPECT_EQ(exports::github({}), "");
}

TEST(Exports, as_annotations_name_files_by_their_path_in_the_repository) {
  const auto file_in = [](const char* repository, const char* file) {
    ExportedLeaks exported;
    exported.repository = repository;
    exported.leaks["00000000000000ab"].file = file;
    const std::string text = exports::github(exported);
    constexpr std::string_view before = "::error file=";
    EXPECT_TRUE(text.starts_with(before)) << text;
    return text.substr(before.size(), text.find(',') - before.size());
  };
  EXPECT_EQ(file_in("/home/u/app", "/home/u/app/src/cache.cpp"), "src/cache.cpp");
  EXPECT_EQ(file_in("/home/u/./app/", "/home/u/app/src/cache.cpp"), "src/cache.cpp");
  EXPECT_EQ(file_in("/home/u/app", "/home/u/app2/cache.cpp"), "/home/u/app2/cache.cpp");
  EXPECT_EQ(file_in("/home/u/app", "/usr/include/vector"), "/usr/include/vector");
  EXPECT_EQ(file_in("/home/u/app", "src/cache.cpp"), "src/cache.cpp");
  EXPECT_EQ(file_in("app", "/home/u/app/cache.cpp"), "/home/u/app/cache.cpp");
  EXPECT_EQ(file_in("", "/home/u/app/cache.cpp"), "/home/u/app/cache.cpp");
}

TEST(Exports, as_test_results_have_a_test_for_each_leak) {
  EXPECT_EQ(
      exports::junit(hostile_leaks()),
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites>\n"
      "  <testsuite name=\"GPU memory leaks\" tests=\"2\" failures=\"1\" skipped=\"1\">\n"
      "    <testcase classname=\"device.cudaMalloc\" name=\"f&lt;&quot;a&quot; &amp; b&gt; in "
      "app 00000000000000ab\" file=\"/src/a,b:c%.cpp\" line=\"41\">\n"
      "      <failure type=\"leak\" message=\"3.0 MiB in 3 allocations never freed\">"
      "a,b:c%.cpp:41 in f\n       #0  &lt;script&gt;?\n</failure>\n"
      "    </testcase>\n"
      "    <testcase classname=\"stream\" name=\"00000000000000cd\">\n"
      "      <skipped message=\"known, but grown from 1.0 KiB in 1 stream: 4.0 KiB in 1 "
      "stream\"/>\n"
      "    </testcase>\n"
      "  </testsuite>\n"
      "</testsuites>\n");
}

TEST(Exports, as_test_results_have_a_test_that_passes_if_there_is_no_leak) {
  EXPECT_NE(exports::junit({}).find("tests=\"1\" failures=\"0\" skipped=\"0\">\n    <testcase "
                                    "classname=\"cuwarden\" name=\"no leaks\"/>\n"),
            std::string::npos);
}

TEST(Exports, are_found_by_name) {
  ASSERT_NE(export_format("junit"), nullptr);
  EXPECT_EQ(std::get<WriteLeaks*>(export_format("junit")->write), exports::junit);
  ASSERT_NE(export_format("jsonl"), nullptr);
  EXPECT_EQ(std::get<WriteReport*>(export_format("jsonl")->write), exports::jsonl);
  EXPECT_EQ(export_format("yaml"), nullptr);
}

// Returns the report of the sample ledger, with a request that was refused.
model::Report sample_report() {
  test::FakeLedger ledger;
  test::fill_sample(ledger);
  const ledger::Reader reader = ledger.reader();
  model::Report report = LedgerReport(reader, {}).whole();
  model::Incident incident;
  incident.id = 1;
  incident.time_ns = 5;
  incident.device = 0;
  incident.stack = 1;
  incident.outcome = "failed";
  incident.verdict = "unknown";
  report.incidents.push_back(incident);
  report.incident_facts.push_back({.incident = 1, .fact = "free_bytes", .value = 7});
  model::Rung rung;
  rung.incident = 1;
  rung.rung = "retry";
  rung.outcome = "no_memory";
  rung.duration_ns = 9;
  report.rungs.push_back(rung);
  return report;
}

// Returns the file of the format about the report, which is added `times` times.
std::string written(StartFile& start, const IndexedReport& report, int times) {
  const std::unique_ptr<CommonFile> file = start();
  for (int i = 0; i < times; ++i) file->add(report, "sample.json");
  const int memory = memfd_create("export", MFD_CLOEXEC);
  const auto output = std::make_unique<Output>(memory);
  file->write(*output);
  EXPECT_EQ(output->finish(), 0);
  std::string content(static_cast<std::size_t>(lseek(memory, 0, SEEK_END)), ' ');
  EXPECT_EQ(pread(memory, content.data(), content.size(), 0), std::ssize(content));
  close(memory);
  return content;
}

// Returns the report without the rows to which others refer, as a damaged file may be.
model::Report without_targets(model::Report report) {
  report.stacks.pop_back();
  report.frames.clear();
  report.modules.clear();
  report.devices.clear();
  report.process = {};
  return report;
}

TEST(Exports, about_memory_are_the_same_each_time_and_grow_with_each_report) {
  const IndexedReport report(sample_report());
  for (const ExportFormat& format : export_formats()) {
    StartFile* const* const start = std::get_if<StartFile*>(&format.write);
    if (start == nullptr) continue;
    const std::string one = written(**start, report, 1);
    EXPECT_EQ(one, written(**start, report, 1)) << format.name;
    EXPECT_LT(written(**start, report, 0).size(), one.size()) << format.name;
  }
}

TEST(Exports, about_memory_are_written_from_a_report_whose_rows_refer_to_nothing) {
  const IndexedReport report(without_targets(sample_report()));
  const IndexedReport empty{model::Report()};
  for (const ExportFormat& format : export_formats()) {
    StartFile* const* const start = std::get_if<StartFile*>(&format.write);
    if (start == nullptr) continue;
    EXPECT_FALSE(written(**start, report, 2).empty()) << format.name;
    written(**start, empty, 2);
  }
}

}  // namespace
}  // namespace cuwarden
