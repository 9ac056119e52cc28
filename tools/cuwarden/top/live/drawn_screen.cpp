#include "tools/cuwarden/top/live/drawn_screen.hpp"

#include <algorithm>

#include "reporters/words/printable.hpp"
#include "tools/cuwarden/top/live/live_lists.hpp"
#include "tools/cuwarden/top/live/live_pages.hpp"

namespace cuwarden {
namespace {

const ColouredLines& help_lines() {
  static const ColouredLines lines{
      {"Keys of cuwarden top", bold_colour},
      {"q                quit", {}},
      {"Up Down k j      select a line; also Page Up, Page Down, Home, End", {}},
      {"Enter            open the selected process, call stack or folded line", {}},
      {"Escape Backspace go back; if a filter is set, remove it first", {}},
      {"s > <            sort by the next column, or by the one before", {}},
      {"r I              reverse the order", {}},
      {"b g c a          sort by live bytes, growth, count, allocations per second", {}},
      {"/                show only lines with a text: Enter keeps it, Escape removes it", {}},
      {"m                fold the stacks by module, by call, by kind; then unfold them", {}},
      {"h ?              show these keys", {}},
      {"", {}},
      {"GROWTH, ALLOCS/s: over the last ten seconds.", {}},
      {"[grows ...]: live memory was added again and again for over a minute.", {}},
      {"LAST 5 MIN: live bytes, the newest at the right side.", {}},
      {"STATE: a request waits for memory, or some were refused or rescued so far.", {}},
  };
  return lines;
}

// Returns the last line of the screen.
std::string keys_line(const LiveState& state) {
  if (state.help) return "any key goes back";
  const bool is_list = state.page != LivePage::stack;
  const LiveList& list = state.page == LivePage::processes ? state.processes : state.stacks;
  if (state.typing) return "filter: " + list.filter + "_";
  std::string line = "q quit  h keys  ";
  if (!list.filter.empty() && is_list) line += "Esc ends filter: " + printable(list.filter) + "  ";
  if (state.page != LivePage::processes && list.filter.empty()) line += "Esc back  ";
  if (is_list) line += "Enter open  s sort  r reverse  / filter  ";
  if (state.page == LivePage::process) line += "m fold  ";
  return line;
}

}  // namespace

void add_scrolled(const ColouredLines& lines, LiveState& state, const LiveScreen& screen,
                  ScreenLines& shown) {
  const std::size_t used = shown.count() + 1;
  const std::size_t rows = std::max<std::size_t>(screen.rows, used + 1) - used;
  state.stacks.visible = rows;
  state.most_scroll = lines.size() - std::min(lines.size(), rows);
  state.scroll = std::min(state.scroll, state.most_scroll);
  for (std::size_t i = state.scroll; i < lines.size() && i < state.scroll + rows; ++i)
    shown.add(lines[i].first, lines[i].second);
}

std::size_t sparkline_width(const LiveScreen& screen) {
  if (screen.columns >= 160) return 30;
  return screen.columns >= 100 ? 20 : 12;
}

std::string order_mark(const LiveList& list, LiveOrder column) {
  if (list.order != column) return {};
  return list.reversed ? "^" : "*";
}

ShownLines shown_lines(LiveList& list, std::size_t count, std::size_t rows) {
  list.visible = std::max<std::size_t>(rows, 1);
  if (list.index < list.first) list.first = list.index;
  if (list.index >= list.first + list.visible) list.first = list.index - list.visible + 1;
  // No row stays empty while lines are above the screen.
  list.first = std::min(list.first, count - std::min(count, list.visible));
  return {list.first, std::min(count, list.first + list.visible)};
}

std::string live_text(LiveState& state, const LiveData& data, const LiveScreen& given) {
  LiveScreen screen = given;
  screen.columns = std::max<std::size_t>(screen.columns, 2);
  ScreenLines lines(screen);
  if (state.help) {
    add_scrolled(help_lines(), state, screen, lines);
  } else if (state.page == LivePage::processes) {
    add_process_list(state, data, screen, lines);
  } else if (state.page == LivePage::process) {
    add_process_page(state, data, screen, lines);
  } else {
    add_stack_page(state, data, screen, lines);
  }
  lines.add_last(keys_line(state), dim_colour);
  return lines.text();
}

std::vector<std::uint32_t> drawn_groups(const LiveState& state, const LiveData& data) {
  std::vector<std::uint32_t> groups;
  if (state.page != LivePage::process || state.help) return groups;
  const ListedStacks listed = listed_stacks(state, data);
  const std::size_t end = std::min(listed.lines.size(), state.stacks.first + state.stacks.visible);
  for (std::size_t i = state.stacks.first; i < end; ++i)
    if (listed.lines[i]->group != 0) groups.push_back(listed.lines[i]->group);
  return groups;
}

}  // namespace cuwarden
