// Lines of the live view that fit a screen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/cuwarden/top/live/live_text.hpp"

namespace cuwarden {

// Collects lines and makes them fit a screen.
class ScreenLines {
 public:
  // Keeps a reference to the screen.
  explicit ScreenLines(const LiveScreen& screen) : screen_(screen) {}
  // Adds a line, cut at the screen's right side. `colour`: terminal sequence of its colour; empty:
  // plain. Does nothing if the screen has no row left.
  void add(std::string_view line, std::string_view colour = {});
  // Adds a line of a list. The selected line begins with ">", and is highlighted in colour.
  void add_listed(std::string_view line, bool selected, std::string_view colour = {});
  // Adds the last line of the screen: empty lines come before it.
  void add_last(std::string_view line, std::string_view colour = {});
  // Returns the number of lines.
  std::size_t count() const { return count_; }
  // Returns the lines, each with a line feed.
  const std::string& text() const { return text_; }

 private:
  const LiveScreen& screen_;
  std::string text_;
  std::size_t count_ = 0;
};

}  // namespace cuwarden
