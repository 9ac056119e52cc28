// The text report's lines about streams, code and executable graphs, for which the driver took
// memory.
#include "reporters/text/text_implicit.hpp"

#include <gtest/gtest.h>

#include <string>

namespace cuwarden {
namespace {

model::ImplicitGroup group(const std::string& item, bool uncertain, bool shared) {
  model::ImplicitGroup made;
  made.device = 0;
  made.item = item;
  made.api = "cuCall";
  made.count = 2;
  made.bytes = 3u << 20;
  made.uncertain = uncertain;
  made.shared = shared;
  return made;
}

std::string text_of(std::vector<model::ImplicitGroup> groups) {
  model::Report report;
  report.implicit_groups = std::move(groups);
  std::string text;
  add_implicit(IndexedReport(std::move(report)), Paint(false), text);
  return text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TextImplicit, estimates_are_told_as_such) {
  const std::string text = text_of(
      {group("streams", false, false), group("graphs", true, true), group("modules", true, false)});
  EXPECT_TRUE(has(text, "    3.0 MiB in 2 streams · GPU 0 · cuCall")) << text;
  EXPECT_TRUE(has(text, "    about 3.0 MiB (shared equally) in 2 executable graphs")) << text;
  EXPECT_TRUE(has(text, "    about 3.0 MiB in 2 pieces of code")) << text;
}

TEST(TextImplicit, rows_that_are_shown_as_one_are_an_estimate_if_one_of_them_is) {
  const std::string text = text_of({group("streams", false, false), group("streams", true, false)});
  EXPECT_TRUE(has(text, "    about 6.0 MiB in 4 streams")) << text;
}

}  // namespace
}  // namespace cuwarden
