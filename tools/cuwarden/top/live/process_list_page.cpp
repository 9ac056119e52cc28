#include <algorithm>
#include <set>

#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"
#include "tools/cuwarden/top/live/live_lists.hpp"
#include "tools/cuwarden/top/live/live_pages.hpp"
#include "tools/cuwarden/top/live/process_state.hpp"
#include "tools/cuwarden/top/table.hpp"
#include "tools/cuwarden/top/top_figures.hpp"

namespace cuwarden {
namespace {

// Returns the ordinals of the devices on which the process has had memory: "0,1".
std::string devices_of(const LiveProcess& process) {
  std::set<std::uint64_t> devices;
  for (const LiveTotal& total : process.totals)
    if (total.row.device) devices.insert(*total.row.device);
  constexpr std::size_t most = 4;
  std::string text;
  std::size_t count = 0;
  for (const std::uint64_t device : devices) {
    if (count++ == most) return text + "+";
    text += (text.empty() ? "" : ",") + std::to_string(device);
  }
  return text;
}

std::string title_of(const LiveData& data, std::size_t listed) {
  const auto count = [](std::size_t number) {
    return human_count(number) + (number == 1 ? " process" : " processes");
  };
  const auto ended = std::ranges::count_if(
      data.processes, [](const LiveProcess& process) { return process.row.ended; });
  std::string title = "cuwarden top: " + count(data.processes.size());
  if (ended != 0)
    title += ", " + human_count(static_cast<std::uint64_t>(ended)) +
             (data.processes.size() == 1 ? " ended" : " of them ended");
  if (listed != data.processes.size()) title += ", " + human_count(listed) + " shown";
  return title;
}

Table table_of(const LiveList& list, const std::vector<const LiveProcess*>& listed,
               const ShownLines& shown, const LiveScreen& screen) {
  const auto mark = [&](LiveOrder column) { return order_mark(list, column); };
  // The columns that tell programs apart stay longest, and with them the live bytes.
  Table table({{"PID" + mark(LiveOrder::pid), 5, true},
               {"USER", 4, false, 8},
               {"RANK", 4, true, 7},
               {"GPU", 3, false, 5},
               {"DEVICE" + mark(LiveOrder::bytes), 9, true},
               {"PINNED", 9, true, 4},
               {"PEAK" + mark(LiveOrder::peak), 9, true, 6},
               {"GROWTH" + mark(LiveOrder::growth), 13, true, 2},
               {"ALLOCS/s" + mark(LiveOrder::rate), 8, true, 9},
               {"RUNNING" + mark(LiveOrder::age), 11, true, 10},
               {"LAST 5 MIN", sparkline_width(screen), false, 3},
               {"STATE", 8, false, 1}},
              "PROGRAM" + mark(LiveOrder::text), screen.columns >= 110 ? 2 : 1);
  for (std::size_t i = shown.first; i < shown.end; ++i) {
    const ProcessRow& row = listed[i]->row;
    table.add({std::to_string(row.pid), printable(row.user.value_or("")),
               row.rank ? std::to_string(*row.rank) : "", devices_of(*listed[i]),
               bytes_text(row.device_bytes), bytes_text(row.host_bytes), bytes_text(row.peak_bytes),
               growth_text(row.growth_bytes_per_minute), rate_text(row.allocations_per_minute),
               age_text(row), sparkline(listed[i]->trend, sparkline_width(screen), screen.ascii),
               state_text(*listed[i])},
              program_text(row));
  }
  return table;
}

std::string_view colour_of(const LiveProcess& process) {
  if (process.row.ended) return dim_colour;
  return process.waiting.empty() ? std::string_view() : yellow_colour;
}

}  // namespace

void add_process_list(LiveState& state, const LiveData& data, const LiveScreen& screen,
                      ScreenLines& lines) {
  const auto listed = listed_processes(state, data);
  find_selected(listed_keys(state, data), state.processes);
  lines.add(title_of(data, listed.size()), bold_colour);
  if (data.processes.empty()) {
    lines.add("");
    lines.add("No process runs under cuwarden.");
    lines.add("Start one: cuwarden run PROGRAM. Processes of other users are visible to root.");
    return;
  }
  // The title, the titles of columns and the line of keys are no part of the list.
  constexpr std::size_t others = 3;
  const std::size_t rows = std::max(screen.rows, others + 1) - others;
  const ShownLines shown = shown_lines(state.processes, listed.size(), rows);
  constexpr std::size_t least_program = 10;
  const std::vector<std::string> table =
      table_of(state.processes, listed, shown, screen).lines(screen.columns - 1, least_program);
  lines.add_listed(table.front(), false, bold_colour);
  for (std::size_t i = 1; i < table.size(); ++i) {
    const std::size_t index = shown.first + i - 1;
    lines.add_listed(table[i], index == state.processes.index, colour_of(*listed[index]));
  }
  if (listed.empty()) lines.add("No process has the text of the filter.");
}

}  // namespace cuwarden
