#include "tools/cuwarden/top/once_text.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "reporters/words/fitted.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"
#include "tools/cuwarden/top/table.hpp"
#include "tools/cuwarden/top/top_figures.hpp"

namespace cuwarden {
namespace {

class Lines {
 public:
  explicit Lines(bool colour) : colour_(colour) {}
  void add(std::string line, std::string_view colour = {}) {
    while (line.ends_with(' ')) line.pop_back();
    if (!colour.empty() && colour_) {
      line = std::string(colour) + line + std::string(end_of_colour);
    }
    text_ += line + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  bool colour_;
  std::string text_;
};

// Adds a line for each request that waits for memory. `names_processes`: true if the lines tell the
// process.
void add_waiting(const TopAnswer& answer, bool names_processes, Lines& lines) {
  for (const WaitingRow& request : answer.waiting) {
    std::string line;
    if (names_processes) {
      const auto process = std::ranges::find(answer.processes, request.pid, &ProcessRow::pid);
      if (process != answer.processes.end()) line = program_text(*process) + " ";
      line += "(pid " + std::to_string(request.pid) + ") ";
    }
    line += waiting_text(request);
    lines.add(line, bold_colour);
  }
}

// Adds the lines of a table with titles. `columns`: letters of a line; 0: any number.
void add_table(const Table& table, std::size_t columns, Lines& lines) {
  constexpr std::size_t least_rest = 32;
  std::string_view colour = reverse_colour;
  for (std::string& line : table.lines(columns, least_rest)) {
    lines.add(std::move(line), colour);
    colour = {};
  }
}

void add_head(const TopAnswer& answer, Lines& lines) {
  for (const ProcessRow& process : answer.processes)
    lines.add(program_text(process) + " (pid " + std::to_string(process.pid) + ") " +
                  (process.ended ? "has ended after " : "running for ") + age_text(process),
              bold_colour);
  for (const DeviceRow& device : answer.devices) {
    std::string line = "GPU " + (device.device ? std::to_string(*device.device) : "?") + ": " +
                       printable(device.name.value_or(""));
    if (device.used_bytes)
      line += ", " + bytes_text(device.used_bytes) + " of " + bytes_text(device.total_bytes) +
              " in use";
    lines.add(line);
    const std::string supply = human_supply(device.steps_left, device.minutes_left);
    if (!supply.empty())
      lines.add("GPU " + (device.device ? std::to_string(*device.device) : "?") +
                    " FILLS UP: full after " + supply,
                bold_colour);
  }
  Table totals({{"", 22}, {"", 25}}, "");
  for (const TotalRow& total : answer.totals) {
    std::string peak = "peak " + bytes_text(total.peak_bytes);
    if (total.failures.value_or(0) > 0) peak += ", " + count_text(total.failures) + " failed";
    totals.add({memory_text(total.kind, total.device),
                bytes_text(total.live_bytes) + " live in " + count_text(total.live_count)},
               std::move(peak));
  }
  std::vector<std::string> sums = totals.lines();
  for (auto line = sums.begin() + 1; line != sums.end(); ++line) lines.add(std::move(*line));
  std::uint64_t growing = 0, growing_bytes = 0;
  for (const StackRow& stack : answer.stacks) {
    growing += stack.keeps_growing ? 1 : 0;
    growing_bytes += stack.keeps_growing_bytes_per_minute.value_or(0);
  }
  if (growing > 0)
    lines.add(human_count(growing) + (growing == 1 ? " stack has" : " stacks have") +
                  " grown for more than a minute, by " + per_minute_text(growing_bytes),
              bold_colour);
  add_waiting(answer, false, lines);
  lines.add("");
}

}  // namespace

std::string process_view(const TopAnswer& answer, const ViewForm& form) {
  Lines lines(form.colour);
  add_head(answer, lines);
  // Columns with a number are left out on narrow terminals, the largest number first. The line of
  // code always stays.
  Table table({{"LIVE*", 9, true},
               {"COUNT", 6, true, 2},
               {"GROWTH", 15, true, 1},
               {"ALLOCS/s", 8, true, 3},
               {"KIND", 12, false, 4},
               {"CALL", 14, false, 5}},
              "WHERE");
  const std::vector<StackRow>& stacks = answer.stacks;
  const bool is_wide = form.columns == 0 || form.columns >= 110;  // as in the live view
  const std::size_t shown = std::min(form.rows, stacks.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const StackRow& stack = stacks[i];
    table.add({bytes_text(stack.live_bytes), count_text(stack.live_count),
               growth_text(stack.growth_bytes_per_minute), rate_text(stack.allocations_per_minute),
               memory_text(stack.kind, stack.device), stack.api.value_or("")},
              (is_wide || !stack.keeps_growing ? growing_mark(stack) : "[grows] ") +
                  stack.where.value_or(""));
  }
  add_table(table, form.columns, lines);
  if (stacks.empty()) lines.add("nothing is live");
  if (shown < stacks.size())
    lines.add("… " + std::to_string(stacks.size() - shown) + " more stacks");
  return fitted(lines.text(), {.columns = form.columns});
}

std::string processes_view(const TopAnswer& answer, const ViewForm& form) {
  Lines lines(form.colour);
  Table table({{"PID", 8, true},
               {"DEVICE*", 9, true},
               {"PINNED", 9, true, 2},
               {"COUNT", 9, true, 4},
               {"GROWTH", 15, true, 1},
               {"ALLOCS/s", 8, true, 5},
               {"RUNNING", 11, true, 3}},
              "PROGRAM");
  std::vector<const ProcessRow*> order;
  for (const ProcessRow& process : answer.processes) order.push_back(&process);
  std::ranges::stable_sort(order, std::greater(), [](const ProcessRow* process) {
    return std::pair(process->device_bytes.value_or(0), process->host_bytes.value_or(0));
  });
  lines.add("cuwarden top: " + std::to_string(order.size()) +
                (order.size() == 1 ? " process" : " processes") + " with a ledger",
            bold_colour);
  add_waiting(answer, true, lines);
  lines.add("");
  const std::size_t shown = std::min(form.rows, order.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const ProcessRow& process = *order[i];
    table.add({std::to_string(process.pid), bytes_text(process.device_bytes),
               bytes_text(process.host_bytes), count_text(process.live_count),
               growth_text(process.growth_bytes_per_minute),
               rate_text(process.allocations_per_minute), age_text(process)},
              program_text(process));
  }
  add_table(table, form.columns, lines);
  return fitted(lines.text(), {.columns = form.columns});
}

}  // namespace cuwarden
