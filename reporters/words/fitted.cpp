#include "reporters/words/fitted.hpp"

#include <algorithm>

#include "reporters/words/printable.hpp"

namespace cuwarden {
namespace {

// Returns the text in ASCII characters alone.
std::string in_ascii(std::string_view text) {
  struct Mark {
    std::string_view mark, ascii;
  };
  constexpr Mark marks[] = {{"…", "..."}, {"·", "-"}, {"→", "->"}, {"µ", "u"}, {"×", "x"}};
  std::string result;
  while (!text.empty()) {
    const Utf8Letter letter = first_letter(text);
    const std::string_view bytes = text.substr(0, letter.bytes);
    const auto* const found = std::ranges::find(marks, bytes, &Mark::mark);
    if (found != std::end(marks))
      result += found->ascii;
    else
      result += static_cast<unsigned char>(bytes.front()) < 0x80 ? bytes : "?";
    text.remove_prefix(letter.bytes);
  }
  return result;
}

// True if a line may be parted between the two words: not behind "in" or "of", nor between a number
// and its unit, which are read together.
bool may_part(std::string_view before, std::string_view behind) {
  constexpr std::string_view glued[] = {"in", "at", "of", "by", "a", "made"};
  constexpr std::string_view units[] = {"B",  "KiB", "MiB", "GiB", "TiB",
                                        "ns", "µs",  "ms",  "s",   "min"};
  while (!behind.empty() && (behind.back() == ',' || behind.back() == ':' || behind.back() == ';'))
    behind.remove_suffix(1);
  return std::ranges::find(glued, before) == std::end(glued) &&
         std::ranges::find(units, behind) == std::end(units);
}

// Returns the length of the words at the start of the line, with the spaces before them, between
// which it may not be parted.
std::size_t end_of_words(std::string_view line) {
  std::string_view before;
  for (std::size_t end = 0;;) {
    const std::size_t start = std::min(line.find_first_not_of(' ', end), line.size());
    const std::size_t next = std::min(line.find(' ', start), line.size());
    const std::string_view word = line.substr(start, next - start);
    if (end != 0 && (word.empty() || may_part(before, word))) return end;
    if (next == line.size()) return next;
    before = word;
    end = next;
  }
}

// Returns the colour that is on behind the text, if `open` is on before it; empty: none.
std::string_view colour_behind(std::string_view text, std::string_view open) {
  while (!text.empty()) {
    const std::size_t colour = leading_colour(text);
    if (colour != 0) open = text.substr(0, colour);
    if (open == end_of_colour) open = {};
    text.remove_prefix(colour == 0 ? 1 : colour);
  }
  return open;
}

// Adds the line to `result` in as many lines as it needs.
void add_line(std::string_view line, std::size_t columns, std::string& result) {
  if (columns == 0 || columns_of(line) <= columns) {
    result += line;
    return;
  }
  constexpr std::size_t most_indent = 16, further = 4;
  const std::size_t indent = std::min(line.find_first_not_of(' '), most_indent) + further;
  std::size_t used = 0;
  std::string_view open;  // the colour that is on; programs that show a page at a time expect it
                          // to end with the line
  bool has_word = false;  // a word that is too long alone needs no line of its own at the start
  while (!line.empty()) {
    const std::size_t start = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t end = end_of_words(line);
    const std::string_view word = line.substr(0, end);
    const std::size_t width = columns_of(word);
    if (has_word && used + width > columns) {
      if (!open.empty()) result += end_of_colour;
      result += '\n' + std::string(indent, ' ');
      result += open;
      result += word.substr(start);
      used = indent + width - start;
    } else {
      result += word;
      used += width;
    }
    has_word = has_word || width > 0;
    open = colour_behind(word, open);
    line.remove_prefix(end);
  }
}

}  // namespace

std::string fitted(std::string_view text, const TextSpace& space) {
  const std::string ascii = space.ascii ? in_ascii(text) : std::string();
  if (space.ascii) text = ascii;
  if (space.columns == 0) return std::string(text);
  std::string result;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    add_line(text.substr(0, end), space.columns, result);
    if (end == text.npos) break;
    result += '\n';
    text.remove_prefix(end + 1);
  }
  return result;
}

}  // namespace cuwarden
