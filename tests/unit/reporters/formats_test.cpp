// Every format shows a report, and is found by its name.
#include "reporters/formats/formats.hpp"

#include <gtest/gtest.h>

namespace cuwarden {
namespace {

TEST(Formats, each_is_found_by_its_name_and_others_are_not) {
  for (const Format& format : report_formats()) EXPECT_EQ(report_format(format.name), &format);
  EXPECT_EQ(report_format("tex"), nullptr);
  EXPECT_EQ(report_format(""), nullptr);
}

TEST(Formats, text_is_the_first_and_shows_what_people_read) {
  ASSERT_FALSE(report_formats().empty());
  EXPECT_EQ(report_formats().front().name, "text");
  model::Report report;
  const IndexedReport indexed(std::move(report));
  const auto ignore = [](std::size_t, std::size_t) {};
  EXPECT_EQ(report_formats().front().write(indexed, {}, ignore), text_report(indexed, {}));
}

}  // namespace
}  // namespace cuwarden
