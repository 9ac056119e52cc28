#include "tools/cuwarden/top/live/live_state.hpp"

#include <algorithm>
#include <vector>

#include "reporters/words/printable.hpp"
#include "tools/cuwarden/top/live/live_lists.hpp"

namespace cuwarden {
namespace {

using Name = Key::Name;

// Returns the list of the page that is open; that of the process for the page of a call stack.
LiveList& list_of(LiveState& state) {
  return state.page == LivePage::processes ? state.processes : state.stacks;
}

// Returns the number of lines by which the key moves: down if it is above 0. `page`: number of
// lines that the screen shows. `all`: number of lines that there are. 0: the key does not move.
std::ptrdiff_t movement(const Key& key, std::size_t page, std::size_t all) {
  const auto lines = static_cast<std::ptrdiff_t>(std::max<std::size_t>(page, 2) - 1);
  if (key.name == Name::up || key.is("k")) return -1;
  if (key.name == Name::down || key.is("j")) return 1;
  if (key.name == Name::page_up) return -lines;
  if (key.name == Name::page_down) return lines;
  if (key.name == Name::home) return -static_cast<std::ptrdiff_t>(all);
  if (key.name == Name::end) return static_cast<std::ptrdiff_t>(all);
  return 0;
}

// Returns the sum, at least 0 and at most `most`.
std::size_t moved(std::size_t from, std::ptrdiff_t by, std::size_t most) {
  const auto to = static_cast<std::ptrdiff_t>(from) + by;
  return static_cast<std::size_t>(
      std::clamp<std::ptrdiff_t>(to, 0, static_cast<std::ptrdiff_t>(most)));
}

// Moves the selection of the list. At the first line, the selection is that line, whichever it is.
void select(LiveState& state, const Key& key, const LiveData& data) {
  LiveList& list = list_of(state);
  const std::vector<std::string> keys = listed_keys(state, data);
  find_selected(keys, list);
  const std::ptrdiff_t by = movement(key, list.visible, keys.size());
  if (by == 0 || keys.empty()) return;
  list.index = moved(list.index, by, keys.size() - 1);
  list.selected = list.index == 0 ? std::string() : keys[list.index];
}

// Sorts the list by the column that lies `by` columns to the right of the present one.
void sort_by_next(LiveState& state, std::ptrdiff_t by) {
  const auto orders = orders_of(state.page);
  LiveList& list = list_of(state);
  const auto count = static_cast<std::ptrdiff_t>(orders.size());
  const auto now = std::ranges::find(orders, list.order) - orders.begin();
  list.order = orders[static_cast<std::size_t>((now + by + count) % count)];
  list.reversed = false;
}

void sort_by(LiveState& state, LiveOrder order) {
  if (std::ranges::count(orders_of(state.page), order) == 0) return;
  list_of(state).order = order;
  list_of(state).reversed = false;
}

// Forgets the selection of a list whose lines have become others.
void begin_list(LiveList& list) {
  list.selected.clear();
  list.index = list.first = 0;
}

void fold_by_next(LiveState& state) {
  constexpr int folds = 4;
  state.fold = static_cast<LiveFold>((static_cast<int>(state.fold) + 1) % folds);
  state.within_fold = LiveFold::stack;
  state.within.clear();
  begin_list(state.stacks);
}

void open_selected(LiveState& state, const LiveData& data) {
  find_selected(listed_keys(state, data), list_of(state));
  if (state.page == LivePage::processes) {
    const auto listed = listed_processes(state, data);
    if (state.processes.index >= listed.size()) return;
    const std::string key = key_of(listed[state.processes.index]->row);
    // The selection stays with the process that was opened, also if it was the first line.
    state.processes.selected = key;
    state.page = LivePage::process;
    if (state.process == key) return;
    state.process = key;
    state.fold = state.within_fold = LiveFold::stack;
    state.within.clear();
    state.stacks.filter.clear();
    begin_list(state.stacks);
  } else if (state.page == LivePage::process) {
    const ListedStacks listed = listed_stacks(state, data);
    if (state.stacks.index >= listed.lines.size()) return;
    const LiveStack& stack = *listed.lines[state.stacks.index];
    if (stack.group != 0) {
      state.stacks.selected = key_of(stack);
      state.page = LivePage::stack;
      state.stack = stack.group;
      state.scroll = 0;
    } else {
      state.within_fold = state.fold;
      state.within = stack.location;
      state.fold = LiveFold::stack;
      begin_list(state.stacks);
    }
  }
}

void go_back(LiveState& state) {
  if (state.page == LivePage::stack) {
    state.page = LivePage::process;
  } else if (state.page == LivePage::process && state.within_fold != LiveFold::stack) {
    state.fold = state.within_fold;
    state.stacks.selected = "of " + state.within;
    state.within_fold = LiveFold::stack;
    state.within.clear();
  } else if (!list_of(state).filter.empty()) {
    list_of(state).filter.clear();
  } else {
    state.page = LivePage::processes;
  }
}

void type(LiveState& state, const Key& key) {
  std::string& filter = list_of(state).filter;
  if (key.name == Name::text) {
    filter += key.text;
  } else if (key.name == Name::backspace) {
    while (!filter.empty() && !starts_letter(filter.back())) filter.pop_back();
    if (!filter.empty()) filter.pop_back();
  } else if (key.name == Name::escape) {
    filter.clear();
    state.typing = false;
  } else if (key.name == Name::enter) {
    state.typing = false;
  }
}

// Handles keys that change how a list is shown.
void arrange(LiveState& state, const Key& key) {
  if (key.is("/")) state.typing = true;
  if (key.is("s") || key.is(">") || key.name == Name::right) sort_by_next(state, 1);
  if (key.is("<") || key.name == Name::left) sort_by_next(state, -1);
  if (key.is("r") || key.is("I")) list_of(state).reversed = !list_of(state).reversed;
  if (key.is("b")) sort_by(state, LiveOrder::bytes);
  if (key.is("g")) sort_by(state, LiveOrder::growth);
  if (key.is("c")) sort_by(state, LiveOrder::count);
  if (key.is("a")) sort_by(state, LiveOrder::rate);
  if (key.is("m") && state.page == LivePage::process) fold_by_next(state);
}

// Scrolls lines that none of is selected. Returns false if the key is another one.
bool scroll(LiveState& state, const Key& key) {
  const std::ptrdiff_t by = movement(key, state.stacks.visible, state.most_scroll + 1);
  if (by == 0) return false;
  state.scroll = moved(std::min(state.scroll, state.most_scroll), by, state.most_scroll);
  return true;
}

}  // namespace

std::string key_of(const ProcessRow& process) {
  return std::to_string(process.pid) + " " + process.start;
}

const LiveProcess* open_process(const LiveState& state, const LiveData& data) {
  for (const LiveProcess& process : data.processes)
    if (key_of(process.row) == state.process) return &process;
  return nullptr;
}

void press(LiveState& state, const Key& key, const LiveData& data) {
  if (state.help) {
    if (key.is("q")) state.quits = true;
    if (!scroll(state, key)) state.help = false;
    return;
  }
  const bool moves = key.name != Name::text;
  if (state.typing && !(moves && movement(key, 1, 1) != 0)) {
    type(state, key);
    return;
  }
  if (key.is("q") || key.is("Q")) {
    state.quits = true;
  } else if (key.is("h") || key.is("?")) {
    state.help = true;
    state.scroll = 0;
  } else if (key.name == Name::escape || key.name == Name::backspace) {
    go_back(state);
  } else if (state.page == LivePage::stack) {
    scroll(state, key);
  } else if (key.name == Name::enter) {
    open_selected(state, data);
  } else {
    arrange(state, key);
    select(state, key, data);
  }
}

}  // namespace cuwarden
