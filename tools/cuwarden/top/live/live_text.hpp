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
  std::size_t columns = 80, rows = 24;  // size in letters
  bool colour = false;                  // true: lines are coloured by terminal sequences
  bool ascii = false;                   // true: only ASCII can be shown
};

// Returns the lines of the screen, as many as it has rows or fewer, each with a line feed. Lines
// are cut at the screen's right side. Changes in the state what depends on the size of the screen:
// the lines that are shown of each list.
std::string live_text(LiveState&, const LiveData&, const LiveScreen&);

// Returns the groups of the call stacks that live_text() has drawn last, if the list of a process
// is open.
std::vector<std::uint32_t> drawn_groups(const LiveState&, const LiveData&);

}  // namespace cuwarden
