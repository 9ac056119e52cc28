// Text from a report or a ledger on its way to a terminal: control characters of a hostile name
// must not get there, be they single bytes or, in UTF-8, U+0080 to U+009F.
#pragma once

#include <string>

namespace cuwarden {

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

}  // namespace cuwarden
