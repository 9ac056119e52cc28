// The text report's lines about streams, code and executable graphs, for which the driver took
// memory.
#include "reporters/text/text_implicit.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reporters/text/elements/merged_rows.hpp"
#include "tests/unit/reporters/text/has.hpp"

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
  add_implicit(IndexedReport(std::move(report)), Style(false), text);
  return text;
}

TEST(TextImplicit, estimates_are_told_as_such) {
  const std::string text = text_of(
      {group("streams", false, false), group("graphs", true, true), group("modules", true, false)});
  EXPECT_TRUE(test::has(text, "    3.0 MiB in 2 streams · GPU 0 · cuCall")) << text;
  EXPECT_TRUE(test::has(text, "    about 3.0 MiB (shared equally) in 2 executable graphs")) << text;
  EXPECT_TRUE(test::has(text, "    about 3.0 MiB in 2 modules")) << text;
}

TEST(TextImplicit, amounts_stand_flush_right_and_rows_of_nothing_are_left_out) {
  std::vector<model::ImplicitGroup> rows = {
      group("context", false, false), group("streams", false, false), group("modules", true, false),
      group("graphs", false, false)};
  rows[0].bytes = 527u << 20;
  rows[1].bytes = 0;
  rows[3].bytes = rows[3].count = 0;
  rows[3].released_count = 2;
  EXPECT_EQ(text_of(rows),
            "\nTAKEN BY THE DRIVER: 530.0 MiB for contexts, modules, kernels, streams and graphs, "
            "all of it for\n"
            "        527.0 MiB in 2 contexts · GPU 0 · cuCall\n"
            "       no stack was recorded\n"
            "    about 3.0 MiB in 2 modules · GPU 0 · cuCall\n"
            "       no stack was recorded\n"
            "              0 B in 2 streams · GPU 0 · cuCall\n"
            "       no stack was recorded\n");
}

TEST(TextImplicit, a_row_names_the_calls_with_which_its_objects_share_bytes) {
  model::Report report;
  const char* const functions[] = {"warm_up", "open_streams", "load_code", "capture", "replay"};
  for (model::Id id = 1; id <= 5; ++id) {
    model::Frame frame;
    frame.id = id;
    frame.function = functions[id - 1];
    report.frames.push_back(frame);
    report.stacks.push_back({.id = id, .frames = {id}});
  }
  report.implicit_groups = {group("streams", true, true)};
  report.implicit_groups[0].stack = 2;
  report.implicit_groups[0].shared_with = {3};
  std::string text;
  add_implicit(IndexedReport(report), Style(false), text);
  EXPECT_TRUE(test::has(text, "       open_streams\n")) << text;
  EXPECT_TRUE(test::has(text, "shared with a call at load_code")) << text;
  EXPECT_FALSE(test::has(text, "more function")) << text;

  report.implicit_groups[0].shared_with = {1, 3, 4, 5};
  text.clear();
  add_implicit(IndexedReport(report), Style(false), text);
  EXPECT_TRUE(test::has(text, "shared with a call at warm_up")) << text;
  EXPECT_TRUE(test::has(text, "and with calls at 1 more function in the report")) << text;
}

TEST(TextImplicit, rows_that_look_alike_name_each_other_call_once) {
  model::ImplicitGroup first = group("streams", true, true), second = first;
  first.stack = 1;
  first.shared_with = {2, 3};
  second.stack = 2;
  second.shared_with = {1, 3};
  EXPECT_EQ(stacks_beside({&first, &second}), (std::vector<model::Id>{3}));
}

TEST(TextImplicit, rows_that_are_shown_as_one_are_an_estimate_if_one_of_them_is) {
  const std::string text = text_of({group("streams", false, false), group("streams", true, false)});
  EXPECT_TRUE(test::has(text, "    about 6.0 MiB in 4 streams")) << text;
}

}  // namespace
}  // namespace cuwarden
