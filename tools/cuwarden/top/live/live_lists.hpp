// The lists of the live view of `cuwarden top`: sorted, filtered and folded.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "tools/cuwarden/top/live/live_data.hpp"
#include "tools/cuwarden/top/live/live_state.hpp"

namespace cuwarden {

// Returns the key of a line in the list of call stacks: a text that no other line of the list has.
std::string key_of(const LiveStack&);
// Returns the stack's text in the column by which stacks are folded. Stacks with the same text
// become one line. Empty for LiveFold::stack.
std::string fold_text(LiveFold, const LiveStack&);

// Returns the processes that match the filter of the list of processes, in the order of the list:
// ended ones come last. The pointers are to elements of LiveData::processes.
std::vector<const LiveProcess*> listed_processes(const LiveState&, const LiveData&);

// The lines of the list of call stacks, filtered, folded and sorted.
struct ListedStacks {
  // Lines in the order of the list; pointers to elements of LiveData::stacks or of `folded`.
  std::vector<const LiveStack*> lines;
  std::deque<LiveStack> folded;  // lines for folded stacks, to which `lines` points
};
// Returns the lines of the list of call stacks for the process that the user has opened.
ListedStacks listed_stacks(const LiveState&, const LiveData&);

// Finds the selected line of the list by its key, LiveList::selected, and sets LiveList::index. If
// no line has this key, selects the line that has the index, or the last line, and sets
// LiveList::selected to its key. If the key is empty, or there are no lines, selects the first line
// by an empty key. `keys`: keys of all lines, in the order of the list.
void find_selected(const std::vector<std::string>& keys, LiveList&);
// Returns the keys of all lines of the open page's list, in the order of the list; empty for the
// page of a call stack, which has no list.
std::vector<std::string> listed_keys(const LiveState&, const LiveData&);

// Returns the columns by which the list of the page can be sorted, from left to right.
std::span<const LiveOrder> orders_of(LivePage);
// True if all call stacks of the process that the user has opened need names, because the list is
// filtered, folded or sorted by them.
bool needs_all_names(const LiveState&);

}  // namespace cuwarden
