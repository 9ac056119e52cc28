#include "tools/cuwarden/top/live/screen_lines.hpp"

#include "reporters/words/fitted.hpp"
#include "reporters/words/printable.hpp"

namespace cuwarden {

void ScreenLines::add(std::string_view line, std::string_view colour) {
  if (count_ == screen_.rows) return;
  std::string fit = screen_.ascii ? fitted(line, {0, true}) : std::string(line);
  if (cut(fit, screen_.columns) != fit) {
    fit = screen_.ascii || screen_.columns < 2 ? cut(std::move(fit), screen_.columns)
                                               : cut(std::move(fit), screen_.columns - 1) + "…";
  }
  // A highlighted line is filled, so that all of it is highlighted.
  if (colour == reverse_colour && screen_.colour) fit = padded(std::move(fit), screen_.columns);
  while (colour != reverse_colour && fit.ends_with(' ')) fit.pop_back();
  if (!colour.empty() && screen_.colour)
    fit = std::string(colour) + fit + std::string(end_of_colour);
  text_ += fit + "\n";
  ++count_;
}

void ScreenLines::add_listed(std::string_view line, bool selected, std::string_view colour) {
  add((selected ? ">" : " ") + std::string(line), selected ? reverse_colour : colour);
}

void ScreenLines::add_last(std::string_view line, std::string_view colour) {
  while (count_ + 1 < screen_.rows) add("");
  add(line, colour);
}

}  // namespace cuwarden
