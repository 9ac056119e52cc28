// Texts that are fitted into the columns and the characters of a terminal.
#include "reporters/words/fitted.hpp"

#include <gtest/gtest.h>

#include <string>

#include "reporters/words/printable.hpp"

namespace cuwarden {
namespace {

TEST(Fitted, short_lines_and_any_line_without_a_limit_stay_as_they_are) {
  const std::string text = "one two three\n\n  four\n";
  EXPECT_EQ(fitted(text, {.columns = 13, .ascii = false}), text);
  EXPECT_EQ(fitted(text, {}), text);
  EXPECT_EQ(fitted("", {.columns = 10, .ascii = false}), "");
}

TEST(Fitted, a_long_line_goes_on_in_indented_lines) {
  EXPECT_EQ(fitted("one two three\n", {.columns = 9, .ascii = false}), "one two\n    three\n");
  EXPECT_EQ(fitted("  one two three four", {.columns = 12, .ascii = false}),
            "  one two\n      three\n      four");
}

TEST(Fitted, a_word_that_is_too_long_is_broken) {
  EXPECT_EQ(fitted("one extraordinarily two\n", {.columns = 8, .ascii = false}),
            "one\n    extr\n    aord\n    inar\n    ily\n    two\n");
  EXPECT_EQ(fitted("extraordinarily\n", {.columns = 8, .ascii = false}),
            "extraord\n    inar\n    ily\n");
  EXPECT_EQ(fitted("µµµµµµµµµµ", {.columns = 8, .ascii = false}), "µµµµµµµµ\n    µµ");
  EXPECT_EQ(fitted("abcdef", {.columns = 3, .ascii = false}), "abc\n    d\n    e\n    f")
      << "each line has a letter at least";
}

TEST(Fitted, a_word_that_is_too_long_stays_whole_if_words_are_not_broken) {
  const auto whole = [](const char* text) {
    return fitted(text, {.columns = 8, .ascii = false, .whole_words = true});
  };
  EXPECT_EQ(whole("one extraordinarily two\n"), "one\n    extraordinarily\n    two\n");
  EXPECT_EQ(whole("extraordinarily\n"), "extraordinarily\n");
}

TEST(Fitted, a_word_that_is_too_long_is_broken_behind_the_parts_of_a_name) {
  EXPECT_EQ(fitted("  one at::native::copy_kernel(int)", {.columns = 18, .ascii = false}),
            "  one\n      at::native::\n      copy_\n      kernel(int)");
  EXPECT_EQ(fitted("in /home/u/folder/name.cpp:1 two", {.columns = 14, .ascii = false}),
            "in /home/u/\n    folder/\n    name.cpp:1\n    two");
  EXPECT_EQ(fitted("one two/three", {.columns = 13, .ascii = false}), "one two/three");
  EXPECT_EQ(fitted("one two/thre four", {.columns = 12, .ascii = false}), "one two/thre\n    four")
      << "a word that fits into a line stays whole";
}

TEST(Fitted, a_colour_ends_and_begins_again_in_a_word_that_is_broken) {
  const std::string red(red_colour), end(end_of_colour);
  EXPECT_EQ(fitted(red + "one::two::three" + end, {.columns = 11, .ascii = false}),
            red + "one::two::" + end + "\n    " + red + "three" + end);
}

TEST(Fitted, a_short_word_stays_with_the_one_behind_it_and_a_number_with_its_unit) {
  EXPECT_EQ(fitted("made in one of three", {.columns = 9, .ascii = false}),
            "made in one\n    of three");
  EXPECT_EQ(fitted("lost: 20.0 MiB, all", {.columns = 11, .ascii = false}),
            "lost:\n    20.0 MiB,\n    all");
}

TEST(Fitted, letters_are_counted_rather_than_bytes_and_colours_take_no_columns) {
  EXPECT_EQ(fitted("µµµ µµµ", {.columns = 7, .ascii = false}), "µµµ µµµ");
  const std::string coloured =
      std::string(red_colour) + "one" + std::string(end_of_colour) + " two";
  EXPECT_EQ(fitted(coloured, {.columns = 7, .ascii = false}), coloured);
}

TEST(Fitted, a_colour_ends_with_its_line_and_goes_on_in_the_next) {
  const std::string red(red_colour), end(end_of_colour);
  EXPECT_EQ(fitted(red + "one two three" + end + " four", {.columns = 9, .ascii = false}),
            red + "one two" + end + "\n    " + red + "three" + end + "\n    four");
}

TEST(Fitted, marks_have_forms_in_ascii_and_other_letters_become_question_marks) {
  EXPECT_EQ(fitted("… 2 more · 3 µs · 2×\n", {.columns = 0, .ascii = true}),
            "... 2 more - 3 us - 2x\n");
  EXPECT_EQ(fitted("naïve\n", {.columns = 0, .ascii = true}), "na?ve\n");
  EXPECT_EQ(fitted("aaa … bbb", {.columns = 9, .ascii = true}), "aaa ...\n    bbb");
}

}  // namespace
}  // namespace cuwarden
