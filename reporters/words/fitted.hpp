// Fits a text of many lines into the columns and the characters of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cuwarden {

// Limits for a text on a terminal: the columns of a line, and the characters that can be shown.
struct TextSpace {
  std::size_t columns = 0;   // columns of a line (characters in UTF-8); 0: any number
  bool ascii = false;        // true if only ASCII characters can be shown
  bool whole_words = false;  // true if words that are longer than a line are not broken
};

// Returns the text, with each line that has more than the given columns broken into several lines.
// The further lines are indented four columns more than the first, but 20 at most. A line is broken
// at a space, but not behind short words such as "in" or before units such as "MiB". A word that
// alone is too long is broken behind "::", "/" or "_", otherwise where the line ends, unless words
// stay whole. Words between which no line may be broken may make a line too long. cuwarden's own
// colours (printable.hpp) take no columns. They end before a break, and begin again behind it.
// If only ASCII can be shown, marks such as "…" and "·" become "..." and "-". Each other character
// beyond ASCII becomes a question mark.
std::string fitted(std::string_view text, const TextSpace&);

}  // namespace cuwarden
