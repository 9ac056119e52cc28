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

// Returns the length of the start of `word`, a word with more than `columns` columns, that fits
// into them. It ends behind a "::", "/" or "_" if there is one. It has one letter at least.
std::size_t end_of_part(std::string_view word, std::size_t columns) {
  std::size_t end = 0, part = 0;  // bytes until here; bytes of the longest part that is fine
  for (std::size_t used = 0; end < word.size();) {
    const std::string_view left = word.substr(end);
    const std::size_t colour = leading_colour(left);
    if (colour == 0 && used++ == std::max<std::size_t>(columns, 1)) break;
    end += colour == 0 ? first_letter(left).bytes : colour;
    const std::string_view before = word.substr(0, end);
    if (before.ends_with("::") || before.ends_with('/') || before.ends_with('_')) part = end;
  }
  return part == 0 ? end : part;
}

// The lines into which one long line is broken.
class BrokenLine {
 public:
  // Adds the lines to `result`, which the caller keeps alive. `indent`: spaces before all lines but
  // the first.
  BrokenLine(std::size_t columns, std::size_t indent, bool whole_words, std::string& result)
      : columns_(columns), indent_(indent), whole_words_(whole_words), result_(result) {}

  // Adds words with the spaces before each of them, between which the line may not be parted.
  void add(std::string_view words) {
    const std::size_t start = std::min(words.find_first_not_of(' '), words.size());
    const std::size_t width = columns_of(words);
    // A word that is too long alone needs no line of its own at the start.
    const bool parts = has_word_ && used_ + width > columns_;
    if (parts) begin_line();
    has_word_ = has_word_ || width > 0;
    if (parts) words.remove_prefix(start);
    if (used_ + columns_of(words) <= columns_ || whole_words_) return append(words);
    while (!words.empty()) {
      const std::size_t spaces = std::min(words.find_first_not_of(' '), words.size());
      const std::size_t end = std::min(words.find(' ', spaces), words.size());
      append(words.substr(0, spaces));
      add_word(words.substr(spaces, end - spaces));
      words.remove_prefix(end);
    }
  }

 private:
  void append(std::string_view text) {
    result_ += text;
    used_ += columns_of(text);
    open_ = colour_behind(text, open_);
  }
  void begin_line() {
    if (!open_.empty()) result_ += end_of_colour;
    result_ += '\n' + std::string(indent_, ' ');
    result_ += open_;
    used_ = indent_;
  }
  // Adds a word, in parts if it fits into no line.
  void add_word(std::string_view word) {
    const bool fits_a_line = indent_ + columns_of(word) <= columns_;
    while (!fits_a_line && used_ + columns_of(word) > columns_) {
      const std::size_t end = end_of_part(word, columns_ - std::min(used_, columns_));
      append(word.substr(0, end));
      word.remove_prefix(end);
      if (word.empty()) return;
      begin_line();
    }
    append(word);
  }

  std::size_t columns_, indent_;  // columns of a line; spaces before all lines but the first
  bool whole_words_;              // true if words are never broken
  std::string& result_;           // text that the lines are added to; not owned
  std::size_t used_ = 0;          // columns of the last line
  bool has_word_ = false;         // true if the first line has a word
  // Colour that is on; empty: none. It ends with each line, since programs that show a page at a
  // time expect that.
  std::string_view open_;
};

// Adds the line to `result` in as many lines as it needs.
void add_line(std::string_view line, const TextSpace& space, std::string& result) {
  if (columns_of(line) <= space.columns) {
    result += line;
    return;
  }
  constexpr std::size_t most_indent = 16, further = 4;
  const std::size_t indent = std::min(line.find_first_not_of(' '), most_indent) + further;
  BrokenLine broken(space.columns, indent, space.whole_words, result);
  while (!line.empty()) {
    const std::size_t end = end_of_words(line);
    broken.add(line.substr(0, end));
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
    add_line(text.substr(0, end), space, result);
    if (end == text.npos) break;
    result += '\n';
    text.remove_prefix(end + 1);
  }
  return result;
}

}  // namespace cuwarden
