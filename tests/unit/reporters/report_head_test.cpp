// Reads the head of a report, which names the process and says if all function names are known.
#include "reporters/json/report_head.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <optional>
#include <string>

namespace cuwarden {
namespace {

std::optional<ReportHead> head_of(const std::string& text) {
  char path[] = "/tmp/report-head-XXXXXX";
  const int file = mkstemp(path);
  unlink(path);
  EXPECT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  auto head = read_report_head(file);
  close(file);
  return head;
}

std::string report(const std::string& names) {
  return R"({"schema": "cuwarden.report/1", "tool": {"complete": true}, )" + names +
         R"("process": {"pid": 7, "program": "/bin/app", "start": "2026-01-02T03:04:05.000000006Z",
          "end_ns": 9, "end_reason": "exit"}, "the rest": )";
}

TEST(ReportHead, the_head_is_known_before_the_rest_is_read) {
  const auto head = head_of(report(""));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->program, "/bin/app");
  EXPECT_EQ(head->pid, 7u);
  EXPECT_EQ(head->end_ns, 9u);
  EXPECT_FALSE(head->running);
}

TEST(ReportHead, names_are_whole_only_if_the_report_says_so) {
  EXPECT_TRUE(head_of(report(R"("names": {"complete": true, "reasons": []}, )"))->has_all_names);
  EXPECT_FALSE(
      head_of(report(R"("names": {"complete": false, "reasons": ["x"]}, )"))->has_all_names);
  EXPECT_FALSE(head_of(report(R"("records": {"complete": true}, )"))->has_all_names);
}

}  // namespace
}  // namespace cuwarden
