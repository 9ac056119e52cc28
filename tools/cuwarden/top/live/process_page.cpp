#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reporters/text/text_accounts.hpp"
#include "reporters/words/fitted.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"
#include "tools/cuwarden/top/live/live_lists.hpp"
#include "tools/cuwarden/top/live/live_pages.hpp"
#include "tools/cuwarden/top/table.hpp"
#include "tools/cuwarden/top/top_figures.hpp"

namespace cuwarden {
namespace {

bool is_wide(const LiveScreen& screen) { return screen.columns >= 110; }

void add_title(const LiveProcess& process, ColouredLines& head) {
  const ProcessRow& row = process.row;
  std::string title = program_text(row) + " (pid " + std::to_string(row.pid) + ") " +
                      (row.ended ? "has ended after " : "running for ") + age_text(row);
  if (row.rank) title += ", rank " + std::to_string(*row.rank);
  if (row.user) title += ", user " + printable(*row.user);
  if (row.failures.value_or(0) != 0) title += ", refused " + count_text(row.failures);
  if (row.rescues.value_or(0) != 0) title += ", rescued " + count_text(row.rescues);
  head.emplace_back(std::move(title), bold_colour);
}

void add_growth(const LiveProcess& process, const std::vector<LiveStack>& stacks,
                ColouredLines& head) {
  std::uint64_t growing = 0, bytes = 0;
  for (const LiveStack& stack : stacks) {
    growing += stack.row.keeps_growing ? 1 : 0;
    bytes += stack.row.keeps_growing_bytes_per_minute.value_or(0);
  }
  if (growing != 0)
    head.emplace_back(human_count(growing) + (growing == 1 ? " stack has" : " stacks have") +
                          " grown for more than a minute, by " + per_minute_text(bytes),
                      bold_colour);
  for (const DeviceRow& device : process.devices) {
    const std::string supply = human_supply(device.steps_left, device.minutes_left);
    if (!supply.empty() && device.device)
      head.emplace_back("GPU " + std::to_string(*device.device) + " FILLS UP: full after " + supply,
                        red_colour);
  }
}

// Returns a bar that shows which part of the whole is used: "[####......]".
std::string used_bar(std::uint64_t used, std::uint64_t whole) {
  constexpr std::uint64_t width = 20;
  const std::uint64_t filled =
      whole == 0 ? 0 : std::min(width, (used / (whole / width + 1)) + (used != 0 ? 1 : 0));
  return "[" + std::string(filled, '#') + std::string(width - filled, '.') + "]";
}

// Adds lines for each device: how full it is, and which parts its used memory has.
void add_devices(const LiveProcess& process, const std::vector<model::AccountItem>& accounts,
                 const LiveScreen& screen, ColouredLines& head) {
  for (const DeviceRow& device : process.devices) {
    if (!device.device) continue;
    std::string line =
        "GPU " + std::to_string(*device.device) + ": " + printable(device.name.value_or(""));
    if (device.used_bytes && device.total_bytes)
      line += ", " + bytes_text(device.used_bytes) + " of " + bytes_text(device.total_bytes) +
              " in use " + used_bar(*device.used_bytes, *device.total_bytes);
    head.emplace_back(std::move(line), std::string_view());
    std::string parts;
    for (const model::AccountItem& item : accounts) {
      if (item.device != *device.device || item.bytes.value_or(0) <= 0) continue;
      parts += (parts.empty() ? "" : " · ") + account_item_words(item.item) + " " +
               human_bytes(static_cast<std::uint64_t>(*item.bytes));
    }
    if (parts.empty()) continue;
    const std::string wrapped = fitted("  " + parts, {screen.columns, false});
    for (std::size_t start = 0; start < wrapped.size();) {
      const std::size_t end = std::min(wrapped.find('\n', start), wrapped.size());
      head.emplace_back(wrapped.substr(start, end - start), dim_colour);
      start = end + 1;
    }
  }
}

void add_totals(const LiveProcess& process, const LiveScreen& screen, ColouredLines& head) {
  if (process.totals.empty()) return;
  Table table({{"KIND", 20}, {"LIVE", 9, true}, {"COUNT", 6, true, 2}, {"PEAK", 9, true, 1}},
              "LAST 5 MIN", is_wide(screen) ? 2 : 1);
  for (const LiveTotal& total : process.totals) {
    const TotalRow& row = total.row;
    std::string rest = sparkline(total.trend, sparkline_width(screen), screen.ascii);
    if (row.failures.value_or(0) != 0) rest += "  refused " + count_text(row.failures);
    table.add({memory_text(row.kind, row.device), bytes_text(row.live_bytes),
               count_text(row.live_count), bytes_text(row.peak_bytes)},
              std::move(rest));
  }
  std::string_view colour = bold_colour;
  for (std::string& line : table.lines(screen.columns, sparkline_width(screen))) {
    head.emplace_back(std::move(line), colour);
    colour = {};
  }
}

// Returns the most lines that may stand above the list of call stacks.
std::size_t room_for_head(std::size_t rows) {
  constexpr std::size_t others = 2;  // the titles of columns, and the line of keys
  const std::size_t both = std::max(rows, others + 1) - others;
  const std::size_t list = std::max<std::size_t>(both / 3, 2);
  return std::max<std::size_t>(both, list + 1) - list;
}

void cut_to(std::size_t room, ColouredLines& head) {
  if (head.size() <= room) return;
  constexpr std::size_t least = 3;
  if (room >= least) {
    const std::size_t hidden = head.size() - room + 1;
    head[room - 1] = {"  … " + human_count(hidden) + " more lines on a higher terminal",
                      dim_colour};
  }
  head.resize(room);
}

std::string rest_title(const LiveState& state) {
  switch (state.fold) {
    case LiveFold::module:
      return "MODULE";
    case LiveFold::call:
      return "CALL";
    case LiveFold::kind:
      return "KIND";
    default:
      return state.within.empty() ? "WHERE" : "WHERE, in " + state.within;
  }
}

Table table_of(const LiveState& state, const ListedStacks& listed, const ShownLines& shown,
               const LiveScreen& screen) {
  const auto mark = [&](LiveOrder column) { return order_mark(state.stacks, column); };
  // The line of code matters most.
  Table table({{"LIVE" + mark(LiveOrder::bytes), 9, true},
               {"COUNT" + mark(LiveOrder::count), 6, true, 2},
               {"GROWTH" + mark(LiveOrder::growth), 13, true, 1},
               {"ALLOCS/s" + mark(LiveOrder::rate), 8, true, 3},
               {"ALLOCS" + mark(LiveOrder::allocations), 8, true, 6},
               {"KIND", 12, false, 4},
               {"CALL", 14, false, 5}},
              rest_title(state) + mark(LiveOrder::text), is_wide(screen) ? 2 : 1);
  for (std::size_t i = shown.first; i < shown.end; ++i) {
    const LiveStack& stack = *listed.lines[i];
    const StackRow& row = stack.row;
    std::string rest = is_wide(screen) ? growing_mark(row) : row.keeps_growing ? "[grows] " : "";
    rest += stack.location;
    if (stack.group == 0)
      rest += " (" + human_count(stack.stacks) + (stack.stacks == 1 ? " stack)" : " stacks)");
    table.add({bytes_text(row.live_bytes), count_text(row.live_count),
               growth_text(row.growth_bytes_per_minute), rate_text(row.allocations_per_minute),
               count_text(row.allocations),
               row.kind.empty() ? "several" : memory_text(row.kind, row.device),
               row.api.value_or(stack.stacks > 1 ? "several" : "")},
              std::move(rest));
  }
  return table;
}

}  // namespace

void add_process_page(LiveState& state, const LiveData& data, const LiveScreen& screen,
                      ScreenLines& lines) {
  const LiveProcess* const process = open_process(state, data);
  if (process == nullptr) {
    lines.add("The process is not known any more.");
    return;
  }
  ColouredLines head;
  add_title(*process, head);
  for (const WaitingRow& request : process->waiting)
    head.emplace_back(waiting_text(request), yellow_colour);
  add_growth(*process, data.stacks, head);
  add_devices(*process, data.accounts, screen, head);
  add_totals(*process, screen, head);
  cut_to(room_for_head(screen.rows), head);
  for (const auto& [line, colour] : head) lines.add(line, colour);

  const ListedStacks listed = listed_stacks(state, data);
  std::vector<std::string> keys;
  for (const LiveStack* const stack : listed.lines) keys.push_back(key_of(*stack));
  find_selected(keys, state.stacks);
  const std::size_t others = head.size() + 2;
  const std::size_t rows = std::max(screen.rows, others + 1) - others;
  const ShownLines shown = shown_lines(state.stacks, listed.lines.size(), rows);
  constexpr std::size_t least_location = 32;
  const std::vector<std::string> table =
      table_of(state, listed, shown, screen).lines(screen.columns - 1, least_location);
  lines.add_listed(table.front(), false, bold_colour);
  for (std::size_t i = 1; i < table.size(); ++i) {
    const std::size_t index = shown.first + i - 1;
    lines.add_listed(table[i], index == state.stacks.index,
                     listed.lines[index]->row.keeps_growing ? bold_colour : std::string_view());
  }
  if (listed.lines.empty())
    lines.add(data.stacks.empty() ? " nothing is live" : " No stack has the text of the filter.");
}

}  // namespace cuwarden
