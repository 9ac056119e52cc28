#include "reporters/words/printable.hpp"

#include <gtest/gtest.h>

namespace cuwarden {
namespace {

TEST(Printable, letters_of_all_lengths_stay) {
  const std::string text = "plain \u00b5 \u00a0 \u20ac \u4e2d \U0001f600 \U0010ffff ~";
  EXPECT_EQ(printable(text), text);
}

TEST(Printable, controls_are_replaced_byte_by_byte) {
  EXPECT_EQ(printable("a\nb\033[2J\x7f"), "a?b?[2J?");
  EXPECT_EQ(printable("\u009b31m"), "??31m");  // CSI as one letter of C1
}

TEST(Printable, bytes_outside_of_a_valid_sequence_are_replaced) {
  EXPECT_EQ(printable("\x9b\x33"), "?3");  // CSI as a terminal of Latin-1 reads it
  EXPECT_EQ(printable("\xc3"), "?");       // cut off
  EXPECT_EQ(printable("\xe2\x82"), "??");  // cut off
  EXPECT_EQ(printable("\xc0\x9b"
                      "a"),
            "??a");  // an overlong sequence
  EXPECT_EQ(printable("\xe0\x82\x9b"
                      "a"),
            "???a");                                      // an overlong sequence
  EXPECT_EQ(printable("\xed\xa0\x80"), "???");            // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80\xff"), "?????");  // beyond U+10FFFF
  EXPECT_EQ(printable("\xe2\x1b[2J"), "??[2J");           // the sequence ends early
  EXPECT_EQ(printable("\xe2\xc2\xb5"), "?\u00b5");        // and a whole one follows
}

TEST(Printable, letters_that_change_the_direction_or_the_line_are_replaced) {
  for (const char* const control :
       {"\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202e", "\u2066", "\u2069"}) {
    EXPECT_EQ(printable(std::string("a") + control + "b"), "a???b");
  }
  EXPECT_EQ(printable("a\u061c"
                      "b"),
            "a??b");
}

TEST(PrintableLines, line_feeds_stay_and_other_controls_go) {
  EXPECT_EQ(printable_lines("a\n\033]0;title\007\r\u009b8m\u202e\n", true),
            "a\n?]0;title????8m???\n");
}

TEST(PrintableLines, cuwardens_own_colours_stay_if_wanted) {
  const std::string painted = std::string(red_colour) + "LEAKS" + std::string(end_of_colour);
  EXPECT_EQ(printable_lines(painted, true), painted);
  EXPECT_EQ(printable_lines(painted, false), "?[1;31mLEAKS?[0m");
}

TEST(PrintableLines, colours_that_hide_text_are_replaced) {
  EXPECT_EQ(printable_lines("\033[8mhidden\033[1;8m", true), "?[8mhidden?[1;8m");
}

}  // namespace
}  // namespace cuwarden
