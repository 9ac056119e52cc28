// The lists of the live view of `cuwarden top`: sorted, filtered and folded.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "tools/cuwarden/top/live/live_data.hpp"
#include "tools/cuwarden/top/live/live_state.hpp"

namespace cuwarden {

// Returns the text that tells a line of the list of stacks from all others.
std::string key_of(const LiveStack&);
// Returns the words about the state of a process: that it has ended, waits for memory, or how many
// of its requests were refused and rescued. Empty if there is nothing to say.
std::string state_text(const LiveProcess&);
// Returns the text of the column by which stacks are folded; empty for LiveFold::stack.
std::string fold_text(LiveFold, const LiveStack&);

// Returns the processes of the list, in its order. They belong to the data.
std::vector<const LiveProcess*> listed_processes(const LiveState&, const LiveData&);

// The lines of the list of stacks.
struct ListedStacks {
  std::vector<const LiveStack*> lines;  // in the order of the list
  std::deque<LiveStack> folded;         // lines of several stacks; others belong to the data
};
// Returns the stacks of the list, in its order.
ListedStacks listed_stacks(const LiveState&, const LiveData&);

// Finds the selected line of a list again, and sets LiveList::index. If the line is gone, the line
// that has its index now is selected. `keys`: those of the lines, in their order.
void find_selected(const std::vector<std::string>& keys, LiveList&);
// Returns the keys of the lines of the page's list; none for the page of a call stack.
std::vector<std::string> listed_keys(const LiveState&, const LiveData&);

// Returns the columns by which the list of the page can be sorted, from left to right.
std::span<const LiveOrder> orders_of(LivePage);
// True if the list needs the names of all stacks of the process that is open: for its filter, its
// folds or its order.
bool needs_all_names(const LiveState&);

}  // namespace cuwarden
