// The bytes of a terminal are divided into keys.
#include "tools/cuwarden/output/keys.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace cuwarden {
namespace {

using Name = Key::Name;

// Returns the keys of bytes that come one at a time, after which no others follow.
std::vector<Key> keys_of(std::string_view bytes) {
  KeyDecoder decoder;
  std::vector<Key> keys;
  const auto keep = [&](Key key) {
    if (key.name != Name::none) keys.push_back(std::move(key));
  };
  for (const char byte : bytes) {
    decoder.add({&byte, 1});
    for (Key key = decoder.next(); key.name != Name::none; key = decoder.next()) keep(key);
  }
  keep(decoder.finish());
  EXPECT_FALSE(decoder.is_amid_a_key());
  return keys;
}

std::vector<Name> names_of(std::string_view bytes) {
  std::vector<Name> names;
  for (const Key& key : keys_of(bytes)) names.push_back(key.name);
  return names;
}

TEST(Keys, letters_are_text_in_utf_8) {
  const std::vector<Key> keys = keys_of("qü€𝄞");
  ASSERT_EQ(keys.size(), 4u);
  EXPECT_TRUE(keys[0].is("q"));
  EXPECT_EQ(keys[1].text, "ü");
  EXPECT_EQ(keys[2].text, "€");
  EXPECT_EQ(keys[3].text, "𝄞");
}

TEST(Keys, arrows_have_the_names_of_both_modes_of_terminals) {
  const std::vector<Name> expected{Name::up, Name::down, Name::right, Name::left};
  EXPECT_EQ(names_of("\033[A\033[B\033[C\033[D"), expected);
  EXPECT_EQ(names_of("\033OA\033OB\033OC\033OD"), expected);
}

TEST(Keys, home_end_and_pages_have_the_names_of_all_terminals) {
  EXPECT_EQ(names_of("\033[H\033OH\033[1~\033[7~"), std::vector<Name>(4, Name::home));
  EXPECT_EQ(names_of("\033[F\033OF\033[4~\033[8~"), std::vector<Name>(4, Name::end));
  EXPECT_EQ(names_of("\033[5~\033[6~\033[3~"),
            (std::vector<Name>{Name::page_up, Name::page_down, Name::erase}));
}

TEST(Keys, an_arrow_with_control_is_the_arrow) {
  EXPECT_EQ(names_of("\033[1;5A"), std::vector<Name>{Name::up});
}

TEST(Keys, enter_and_backspace_have_two_bytes_each) {
  EXPECT_EQ(names_of("\r\n"), std::vector<Name>(2, Name::enter));
  EXPECT_EQ(names_of("\b\177"), std::vector<Name>(2, Name::backspace));
}

TEST(Keys, escape_alone_is_a_key_once_nothing_follows) {
  KeyDecoder decoder;
  decoder.add("\033");
  EXPECT_EQ(decoder.next().name, Name::none);
  EXPECT_TRUE(decoder.is_amid_a_key());
  EXPECT_EQ(decoder.finish().name, Name::escape);
  EXPECT_FALSE(decoder.is_amid_a_key());
}

TEST(Keys, escape_and_a_letter_at_once_are_two_keys) {
  EXPECT_EQ(names_of("\033q"), (std::vector<Name>{Name::escape, Name::text}));
  EXPECT_EQ(names_of("\033\033[A"), (std::vector<Name>{Name::escape, Name::up}));
}

TEST(Keys, unknown_sequences_and_bytes_that_are_no_text_are_left_out) {
  const std::vector<Key> keys = keys_of("\033[19~\033[?1;2c\033OP\001\xff\x80\xc3(a");
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_TRUE(keys[0].is("("));
  EXPECT_TRUE(keys[1].is("a"));
}

}  // namespace
}  // namespace cuwarden
