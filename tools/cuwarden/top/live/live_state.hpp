// The state of the live view of `cuwarden top`: what is open and selected, and how lists are
// sorted, filtered and folded. It changes by keys alone, without a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/cuwarden/output/keys.hpp"
#include "tools/cuwarden/top/live/live_data.hpp"

namespace cuwarden {

// Pages of the live view: the list of all processes, one process with its call stacks, one whole
// call stack.
enum class LivePage : std::uint8_t { processes, process, stack };

// The column by which a list is sorted. bytes: live bytes. rate: allocations per second.
// allocations: allocations since the start. age: time since the start of the process. text: the
// last column, which is the program or the line of code. Lists are sorted by pid and text from the
// lowest on, by all others from the highest.
enum class LiveOrder : std::uint8_t {
  bytes,
  peak,
  count,
  growth,
  rate,
  allocations,
  age,
  pid,
  text
};

// The column that stacks must share to be folded into one line. stack: none is folded.
enum class LiveFold : std::uint8_t { stack, module, call, kind };

// State of one list.
struct LiveList {
  LiveOrder order = LiveOrder::bytes;
  bool reversed = false;
  std::string filter{};  // text that lines must contain; empty: all lines are shown
  // Key of the selected line (key_of()); empty: the first line, whichever that is. The selection
  // stays with its line when the order changes.
  std::string selected{};
  std::size_t index = 0;  // index of the selected line in the list
  std::size_t first = 0;  // index of the first line that is shown
  // Number of the list's lines that the screen has shown last.
  std::size_t visible = 1;
};

// State of the live view.
struct LiveState {
  LivePage page = LivePage::processes;
  bool help = false;    // true: the list of keys hides the page
  bool typing = false;  // true: letters go into the filter of the list
  bool quits = false;   // true once the user has quit
  LiveList processes{}, stacks{};
  LiveFold fold = LiveFold::stack;
  // Folded line that is open: stacks of it alone are listed. `within_fold`: the fold that made the
  // line; LiveFold::stack: none is open. `within`: text that its stacks share in that column.
  LiveFold within_fold = LiveFold::stack;
  std::string within{};
  std::string process{};    // key of the process that is open (key_of()); empty: none
  std::uint32_t stack = 0;  // group of the call stack that is open
  std::size_t scroll = 0;   // lines of the whole call stack, or of the help, above the screen
  // Most lines by which these can be scrolled, as they were drawn last.
  std::size_t most_scroll = 0;
};

// Returns the text that tells the process from all others: its pid and start.
std::string key_of(const ProcessRow&);
// Returns the process that is open; null if there is none, or if the data lacks it.
const LiveProcess* open_process(const LiveState&, const LiveData&);

// Changes the state as the key says. The data are those that the screen shows.
void press(LiveState&, const Key&, const LiveData&);

}  // namespace cuwarden
