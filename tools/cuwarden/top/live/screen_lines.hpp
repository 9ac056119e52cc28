// Lines of the live view that fit a screen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/cuwarden/top/live/drawn_screen.hpp"

namespace cuwarden {

// Collects the lines of a screen, and makes them fit its width and height.
class ScreenLines {
 public:
  // Keeps a reference to the screen, which must outlive the object.
  explicit ScreenLines(const LiveScreen& screen) : screen_(screen) {}
  // Adds a line, cut at the screen's right side. `colour`: terminal sequence of its colour; empty:
  // no colour. Does nothing if all rows of the screen have lines.
  void add(std::string_view line, std::string_view colour = {});
  // Adds a line of a list with ">" or a space before it. `selected`: true: the line gets ">", and
  // is highlighted if the screen has colours. `colour`: terminal sequence of the colour of lines
  // that are not selected; empty: no colour.
  void add_listed(std::string_view line, bool selected, std::string_view colour = {});
  // Adds a line in the screen's last row. Empty lines fill the rows before it. `colour`: terminal
  // sequence of its colour; empty: no colour.
  void add_last(std::string_view line, std::string_view colour = {});
  // Returns the number of lines that were added to the screen so far.
  std::size_t count() const { return count_; }
  // Returns the lines that were added to the screen so far, each with a line feed.
  const std::string& text() const { return text_; }

 private:
  const LiveScreen& screen_;  // size and abilities of the screen; not owned
  std::string text_;          // lines of the screen that were added so far, each with a line feed
  std::size_t count_ = 0;     // number of lines in text_
};

}  // namespace cuwarden
