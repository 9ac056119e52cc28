// Makes texts harmless for a terminal. Names from outside may hold characters that control the
// terminal or change the order in which a line is read: these are replaced.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cuwarden {

// The character at the start of a text in UTF-8.
struct Utf8Letter {
  std::size_t bytes = 1;   // length of the character in bytes; 1 if the bytes are not valid UTF-8
  bool valid = false;      // true if the bytes are valid UTF-8
  std::uint32_t code = 0;  // code point of the character; 0 if not valid
};

// Returns the first character of `text`, which is in UTF-8 and not empty. For invalid bytes,
// `valid` of the result is false. Overlong forms, surrogates and codes above U+10FFFF are invalid:
// terminals differ in how they show them.
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

// True if the code point is a C0 or C1 control, DEL, a control of the writing direction, or a
// separator of lines or paragraphs.
constexpr bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

// True if the text has a control character (is_control()) or a byte that is not valid UTF-8.
constexpr bool acts_on_a_terminal(std::string_view text) {
  while (!text.empty()) {
    const Utf8Letter letter = first_letter(text);
    if (!letter.valid || is_control(letter.code)) return true;
    text.remove_prefix(letter.bytes);
  }
  return false;
}

// Returns the text with a question mark for each byte of a control character (is_control()) and for
// each byte that is not valid UTF-8. Line feeds count as control characters, so the result is one
// line.
inline std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Letter letter = first_letter(std::string_view(text).substr(i));
    if (!letter.valid || is_control(letter.code)) text.replace(i, letter.bytes, letter.bytes, '?');
    i += letter.bytes;
  }
  return text;
}

// Escape sequences of the colours that cuwarden's texts use on a terminal. `end_of_colour` switches
// back to plain text.
constexpr std::string_view bold_colour = "\033[1m", dim_colour = "\033[2m",
                           red_colour = "\033[1;31m", green_colour = "\033[32m",
                           yellow_colour = "\033[33m", reverse_colour = "\033[7m",
                           end_of_colour = "\033[0m";

// Returns the length of the colour's escape sequence at the start of the text; 0 if the text starts
// with none. Only cuwarden's own colours count, such as bold_colour.
constexpr std::size_t leading_colour(std::string_view text) {
  for (const std::string_view colour : {bold_colour, dim_colour, red_colour, green_colour,
                                        yellow_colour, reverse_colour, end_of_colour}) {
    if (text.starts_with(colour)) return colour.size();
  }
  return 0;
}

// Returns the number of columns (characters in UTF-8) that the text takes on a terminal. cuwarden's
// own colours take none.
constexpr std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const std::size_t colour = leading_colour(text);
    columns += colour == 0 ? 1 : 0;
    text.remove_prefix(colour == 0 ? first_letter(text).bytes : colour);
  }
  return columns;
}

// Returns a text of many lines with a question mark for each byte that printable() would replace,
// except line feeds. If `colours` is true, the escape sequences of cuwarden's own colours, such as
// bold_colour, stay, too. This is the last barrier before a terminal. Names from outside must pass
// printable() before, because a line feed in a name would begin a line of its own.
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

// True if the byte is the first byte of a character in UTF-8. The number of such bytes in a text is
// its number of columns on a terminal: "µ" has two bytes and one column.
constexpr bool starts_letter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

// Returns the text, filled with spaces to `width` columns (characters in UTF-8); unchanged if it
// has more. `right`: true puts the spaces before the text, false behind it.
inline std::string padded(std::string text, std::size_t width, bool right = false) {
  std::size_t columns = 0;
  for (const char byte : text) columns += starts_letter(byte) ? 1 : 0;
  if (columns < width) text.insert(right ? 0 : text.size(), width - columns, ' ');
  return text;
}

// Returns the first `width` columns (characters in UTF-8) of the text, or all of a shorter text.
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
