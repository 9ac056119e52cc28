// Text on its way to a terminal. Letters with which a hostile name would act on the terminal, or
// change the order in which a line is read, do not get there.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace cuwarden {

// A letter of UTF-8 at the start of a text: its length, and its code point if it is valid.
struct Utf8Letter {
  std::size_t bytes = 1;
  bool valid = false;
  std::uint32_t code = 0;
};

// Returns the letter at the start of a text that is not empty. Overlong forms, surrogates and codes
// above U+10FFFF are not valid: terminals differ in how they show them.
constexpr Utf8Letter first_letter(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, true, lead};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {bytes, true, code};
}

// True for C0 and C1 controls, controls of the writing direction, and line separators.
constexpr bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

constexpr bool acts_on_a_terminal(std::string_view text) {
  while (!text.empty()) {
    const Utf8Letter letter = first_letter(text);
    if (!letter.valid || is_control(letter.code)) return true;
    text.remove_prefix(letter.bytes);
  }
  return false;
}

// Returns the text with a question mark for each byte that is not part of a printable letter.
inline std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Letter letter = first_letter(std::string_view(text).substr(i));
    if (!letter.valid || is_control(letter.code)) text.replace(i, letter.bytes, letter.bytes, '?');
    i += letter.bytes;
  }
  return text;
}

// Terminal sequences of the colours that cuwarden's texts use, and the one that ends a colour.
constexpr std::string_view bold_colour = "\033[1m", dim_colour = "\033[2m",
                           red_colour = "\033[1;31m", green_colour = "\033[32m",
                           yellow_colour = "\033[33m", reverse_colour = "\033[7m",
                           end_of_colour = "\033[0m";

// Returns the length of the colour sequence at the start of the text; 0 if there is none.
constexpr std::size_t leading_colour(std::string_view text) {
  for (const std::string_view colour : {bold_colour, dim_colour, red_colour, green_colour,
                                        yellow_colour, reverse_colour, end_of_colour}) {
    if (text.starts_with(colour)) return colour.size();
  }
  return 0;
}

// As printable(), for a text of many lines: line feeds stay and, where `colours` is true, so do
// the colours above. It is the last barrier before a terminal. A name from outside still passes
// printable() by itself, because a line feed in the name would begin a line of its own.
inline std::string printable_lines(std::string_view text, bool colours) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Utf8Letter letter = first_letter(text);
    std::size_t bytes = letter.bytes;
    if (colours && letter.code == '\033' && leading_colour(text) != 0) {
      bytes = leading_colour(text);
      result += text.substr(0, bytes);
    } else if (letter.valid && (letter.code == '\n' || !is_control(letter.code))) {
      result += text.substr(0, bytes);
    } else {
      result.append(bytes, '?');
    }
    text.remove_prefix(bytes);
  }
  return result;
}

// True if the byte starts a letter of UTF-8, and so takes a column: "µ" has two bytes and one
// column.
constexpr bool starts_letter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

// Returns the text, filled with spaces to `width` columns. `right`: true puts the spaces before it.
inline std::string padded(std::string text, std::size_t width, bool right = false) {
  std::size_t columns = 0;
  for (const char byte : text) columns += starts_letter(byte) ? 1 : 0;
  if (columns < width) text.insert(right ? 0 : text.size(), width - columns, ' ');
  return text;
}

// Returns the text, cut to at most `width` columns.
inline std::string cut(std::string text, std::size_t width) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (starts_letter(text[i]) && columns++ == width) {
      text.resize(i);
      break;
    }
  }
  return text;
}

}  // namespace cuwarden
