// The pages of the live view of `cuwarden top`, without the line of keys at the bottom.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/cuwarden/top/live/live_data.hpp"
#include "tools/cuwarden/top/live/live_state.hpp"
#include "tools/cuwarden/top/live/screen_lines.hpp"

namespace cuwarden {

// Lines of text, each with the terminal sequence of its colour. An empty sequence: the line has no
// colour.
using ColouredLines = std::vector<std::pair<std::string, std::string_view>>;

// Adds the lines of the page that lists all processes. Leaves the screen's last row free. Sets
// LiveList::first and LiveList::visible of the list.
void add_process_list(LiveState&, const LiveData&, const LiveScreen&, ScreenLines&);
// Adds the lines of the page of one process: facts about it, and the list of its call stacks.
// Leaves the screen's last row free. Sets LiveList::first and LiveList::visible of the list.
void add_process_page(LiveState&, const LiveData&, const LiveScreen&, ScreenLines&);
// Adds the lines of the page that shows one whole call stack. Leaves the screen's last row free.
// Sets LiveState::scroll and LiveState::most_scroll.
void add_stack_page(LiveState&, const LiveData&, const LiveScreen&, ScreenLines&);

// Adds those of `lines` to the screen that fit above its last row, from the index LiveState::scroll
// on. Sets LiveState::most_scroll, and lowers LiveState::scroll to most_scroll if it is higher.
// Sets LiveList::visible of LiveState::stacks to the number of lines that fit.
void add_scrolled(const ColouredLines& lines, LiveState&, const LiveScreen&, ScreenLines&);
// Returns the width in letters that sparklines, rows of bars about the live bytes over time, have
// on this screen.
std::size_t sparkline_width(const LiveScreen&);
// Returns the mark behind the heading of the column: "*" if the list is sorted by it, or "^" if the
// order is reversed; empty for other columns.
std::string order_mark(const LiveList&, LiveOrder column);

// The range of lines of a list that the screen shows.
struct ShownLines {
  // first: index in the list of the first line that is shown. end: index behind the last one.
  std::size_t first = 0, end = 0;
};
// Returns the lines of the list that fit `rows` rows of the screen; the selected line is among
// them. Sets LiveList::first and LiveList::visible. `count`: number of all lines of the list.
ShownLines shown_lines(LiveList&, std::size_t count, std::size_t rows);

}  // namespace cuwarden
