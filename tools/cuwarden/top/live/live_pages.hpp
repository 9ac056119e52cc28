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

// Lines with the terminal sequences of their colours; an empty sequence: plain.
using ColouredLines = std::vector<std::pair<std::string, std::string_view>>;

// Each function adds the lines of a page, and leaves the screen's last row free. They set in the
// state what depends on the size of the screen.

// Adds the list of all processes.
void add_process_list(LiveState&, const LiveData&, const LiveScreen&, ScreenLines&);
// Adds the process that is open: facts about it, and the list of its call stacks.
void add_process_page(LiveState&, const LiveData&, const LiveScreen&, ScreenLines&);
// Adds the call stack that is open.
void add_stack_page(LiveState&, const LiveData&, const LiveScreen&, ScreenLines&);

// Adds the lines from `first` on that fit the screen, and sets how far they can be scrolled.
void add_scrolled(const ColouredLines& lines, LiveState&, const LiveScreen&, ScreenLines&);
// Returns the width of a sparkline on the screen in letters.
std::size_t sparkline_width(const LiveScreen&);
// Returns the mark behind the title of the column by which the list is sorted: "*", or "^" if the
// list is reversed; empty for other columns.
std::string order_mark(const LiveList&, LiveOrder column);

// The lines of a list that the screen shows.
struct ShownLines {
  std::size_t first = 0, end = 0;  // index of the first one, and of the first one behind the last
};
// Returns the lines of the list that fit `rows` rows, the selected one among them, and sets
// LiveList::first and LiveList::visible. `count`: number of the list's lines.
ShownLines shown_lines(LiveList&, std::size_t count, std::size_t rows);

}  // namespace cuwarden
