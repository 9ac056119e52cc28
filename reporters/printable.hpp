// Text from a report or a ledger on its way to a terminal: control characters of a hostile name
// must not get there, be they single bytes or, in UTF-8, U+0080 to U+009F.
#pragma once

#include <string>

namespace cuwarden {

// Control characters of a hostile name must not get there, be they single bytes or, in UTF-8,
// U+0080 to U+009F.
inline std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto letter = static_cast<unsigned char>(text[i]);
    if (letter < 0x20 || letter == 0x7f) text[i] = '?';
    if (letter == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      text[i] = text[i + 1] = '?';
    }
  }
  return text;
}

// A continuation byte of UTF-8 takes no column of its own: "µ" is two bytes and one column.
constexpr bool starts_letter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

inline std::string padded(std::string text, std::size_t width, bool right = false) {
  std::size_t columns = 0;
  for (const char byte : text) columns += starts_letter(byte) ? 1 : 0;
  if (columns < width) text.insert(right ? 0 : text.size(), width - columns, ' ');
  return text;
}

// At most `width` columns of it.
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
