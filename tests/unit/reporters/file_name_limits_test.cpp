// File names of reports: they fit into their folders, differ, and keep their ending.
#include "reporters/files/file_name_limits.hpp"

#include <gtest/gtest.h>

#include "reporters/words/printable.hpp"

namespace cuwarden {
namespace {

TEST(ReportNames, the_number_comes_before_the_ending) {
  EXPECT_EQ(numbered_name("ci.json", 0), "ci.json");
  EXPECT_EQ(numbered_name("ci.json", 1), "ci.1.json");
  EXPECT_EQ(numbered_name("ci.json", 12345), "ci.12345.json");
  EXPECT_EQ(numbered_name("x.tar.json", 2), "x.tar.2.json");
  EXPECT_EQ(numbered_name("app-node1-77.json", 3), "app-node1-77.3.json");
}

TEST(ReportNames, a_name_without_an_ending_gets_the_number_at_its_end) {
  EXPECT_EQ(numbered_name("report", 1), "report.1");
  EXPECT_EQ(numbered_name("report.", 1), "report..1");
  EXPECT_EQ(numbered_name("report.4711", 1), "report.4711.1") << "a pid is no ending";
  EXPECT_EQ(numbered_name(".hidden", 1), ".hidden.1");
}

TEST(ReportNames, a_hidden_report_still_ends_in_json) {
  EXPECT_EQ(numbered_name(".json", 1), ".1.json");
  EXPECT_EQ(numbered_name(".ci.json", 1), ".ci.1.json");
}

TEST(ReportNames, a_name_that_fits_is_left_as_it_is) {
  EXPECT_EQ(fitting_name("ci.json", 143), "ci.json");
  const std::string longest(255, 'x');
  EXPECT_EQ(fitting_name(longest, 255), longest);
}

TEST(ReportNames, a_shortened_name_keeps_its_beginning_and_its_end) {
  const std::string name =
      "cuwarden-" + std::string(240, 'p') + "-" + std::string(64, 'h') + "-4194304.json";
  for (const std::size_t most : {shortest_name_limit, usual_name_limit - 16, usual_name_limit}) {
    const std::string fitting = fitting_name(name, most);
    EXPECT_LE(fitting.size(), most);
    EXPECT_TRUE(fitting.starts_with("cuwarden-ppp")) << fitting;
    EXPECT_TRUE(fitting.ends_with("hhh-4194304.json")) << fitting;
  }
}

TEST(ReportNames, names_that_differ_still_differ_when_shortened) {
  const std::string same(300, 'x');
  EXPECT_NE(fitting_name(same + "a" + same, 143), fitting_name(same + "b" + same, 143));
  EXPECT_EQ(fitting_name(same + "a" + same, 143), fitting_name(same + "a" + same, 143));
}

TEST(ReportNames, no_letter_is_cut_in_two) {
  for (const std::string_view letter : {"é", "文", "🚀"}) {
    for (std::size_t shift = 0; shift < 4; ++shift) {
      std::string name(shift, 'x');
      while (name.size() < 400) name += letter;
      name += "-7.json";
      const std::string fitting = fitting_name(name, 143);
      EXPECT_LE(fitting.size(), 143u);
      EXPECT_GE(fitting.size(), 143u - 2 * letter.size());
      EXPECT_EQ(printable(fitting), fitting) << "a broken letter becomes a question mark";
    }
  }
}

TEST(ReportNames, bytes_that_are_no_letters_are_shortened_too) {
  const std::string fitting = fitting_name(std::string(400, '\x80'), 143);
  EXPECT_LE(fitting.size(), 143u);
  EXPECT_FALSE(fitting.empty());
}

TEST(ReportNames, a_folder_that_does_not_exist_yet_has_the_limit_of_the_one_above_it) {
  EXPECT_EQ(name_limit("/no-such-folder/below/it"), name_limit("/"));
  EXPECT_EQ(name_limit("no-such-folder/below/it"), name_limit("."));
  EXPECT_EQ(name_limit(""), name_limit("."));
  EXPECT_GE(name_limit("/"), 64u);
  EXPECT_LE(name_limit("/"), usual_name_limit);
}

}  // namespace
}  // namespace cuwarden
