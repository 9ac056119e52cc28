// Draws the live view of `cuwarden top`, as lines of text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/cuwarden/top/live/live_data.hpp"
#include "tools/cuwarden/top/live/live_state.hpp"

namespace cuwarden {

// The screen for which the live view is drawn.
struct LiveScreen {
  std::size_t columns = 80, rows = 24;  // letters in a line, and lines
  bool colour = false;                  // true: lines may have terminal sequences of colours
  bool ascii = false;                   // true: the terminal can show only ASCII
};

// Returns the lines of the screen, at most one for each of its rows, each with a line feed. Lines
// are cut at the screen's right side. Sets in the state which lines of lists and texts are shown,
// since the size of the screen decides this.
std::string live_text(LiveState&, const LiveData&, const LiveScreen&);

// Returns the groups, by their rows in the ledger, of the call stacks that live_text() has drawn
// last. Empty unless the page of a process is shown. Folded lines have no group.
std::vector<std::uint32_t> drawn_groups(const LiveState&, const LiveData&);

}  // namespace cuwarden
