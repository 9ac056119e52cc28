// The formats of `cuwarden export`, with names that mean something in a format.
#include "reporters/exports/exports.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace cuwarden
