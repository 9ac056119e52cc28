// The state of the live view of `cuwarden top`: what is open and selected, and how lists are
// sorted, filtered and folded. It changes by keys alone, without a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/cuwarden/output/keys.hpp"
#include "tools/cuwarden/top/live/live_data.hpp"

namespace cuwarden {

// Pages of the live view. processes: the list of all processes. process: one process with the list
// of its call stacks. stack: one whole call stack.
enum class LivePage : std::uint8_t { processes, process, stack };

// The column by which a list is sorted. bytes: live bytes; for processes those of devices, then
// those of the host. peak: highest live bytes. count: number of live allocations. growth: change of
// the live bytes per minute. rate: allocations per second. allocations: number of allocations since
// the process's start. age: time since the process's start. text: the last column, which is the
// program or the line of code. Lists are sorted by pid and text from the lowest on, by all others
// from the highest.
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

// The column by which call stacks are folded: stacks with the same module, the same CUDA function
// (call), or the same kind of memory and device become one line. stack: no stacks are folded.
enum class LiveFold : std::uint8_t { stack, module, call, kind };

// State of a list: its order, its filter, the selected line, and the lines that are shown.
struct LiveList {
  LiveOrder order = LiveOrder::bytes;  // column by which the list is sorted
  // True: the line that comes last by `order` is shown first. Processes that have ended stay last.
  bool reversed = false;
  // Text that lines of the list must contain, in small or capital letters; empty: all lines are
  // shown.
  std::string filter{};
  // Key of the selected line (key_of()), which stays selected when the order changes. Empty: the
  // first line is selected, also if another line comes first.
  std::string selected{};
  std::size_t index = 0;  // index of the selected line in the list
  std::size_t first = 0;  // index in the list of the line that is uppermost on the screen
  // Number of lines of the list that fitted the screen when it was drawn last.
  std::size_t visible = 1;
};

// State of the live view: the page that is shown, and the state of the lists.
struct LiveState {
  LivePage page = LivePage::processes;  // the page that is shown
  bool help = false;                    // true: the list of keys is shown in place of the page
  bool typing = false;                  // true: letters that the user types go into a list's filter
  bool quits = false;                   // true once the user has quit
  LiveList processes{}, stacks{};       // the lists of processes and of call stacks
  LiveFold fold = LiveFold::stack;      // column by which stacks are folded
  // Fold that made the folded line that the user has opened; only stacks of this line are listed.
  // LiveFold::stack: no folded line is open.
  LiveFold within_fold = LiveFold::stack;
  // Text that the stacks of the opened folded line share (fold_text()); empty: no folded line is
  // open.
  std::string within{};
  // Key (key_of()) of the process that the user has opened last; empty: none.
  std::string process{};
  // Row in the ledger of the group whose call stack the user has opened last; 0: none.
  std::uint32_t stack = 0;
  // Number of lines of the whole call stack, or of the list of keys, that are scrolled away above
  // the screen.
  std::size_t scroll = 0;
  // Highest useful value of `scroll`, set when the screen was drawn last.
  std::size_t most_scroll = 0;
};

// Returns the key of the process, its pid and start: a text that no other process has.
std::string key_of(const ProcessRow&);
// Returns the process that the user has opened (LiveState::process), an element of
// LiveData::processes; null if there is none.
const LiveProcess* open_process(const LiveState&, const LiveData&);

// Handles a key that the user has pressed: changes the state. `LiveData`: the data that the screen
// shows.
void press(LiveState&, const Key&, const LiveData&);

}  // namespace cuwarden
