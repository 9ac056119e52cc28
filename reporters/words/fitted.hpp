// Fits a text of many lines into the columns and the characters of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cuwarden {

// Limits for a text on a terminal: the columns of a line, and the characters that can be shown.
struct TextSpace {
  std::size_t columns = 0;  // columns of a line (characters in UTF-8); 0: any number
  bool ascii = false;       // true if only ASCII characters can be shown
};

// Returns the text, with each line cut that has more than the given columns. The rest follows in
// further lines, indented four columns more than the line itself. Lines are cut at spaces only. A
// word that alone is too long stays whole. cuwarden's own colours (printable.hpp) take no columns.
// If only ASCII can be shown, marks such as "…" and "·" become "..." and "-", and each other
// character beyond ASCII a question mark.
std::string fitted(std::string_view text, const TextSpace&);

}  // namespace cuwarden
