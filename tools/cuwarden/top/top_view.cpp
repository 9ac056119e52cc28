#include "tools/cuwarden/top/top_view.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

class Lines {
 public:
  explicit Lines(const ViewSize& size) : size_(size) {}
  void add(std::string line, std::string_view colour = {}) {
    if (size_.columns != 0 && cut(line, size_.columns) != line) {
      line = cut(std::move(line), size_.columns - 1) + "…";
    }
    while (line.ends_with(' ')) line.pop_back();
    if (!colour.empty() && size_.colour) {
      line = std::string(colour) + line + std::string(end_of_colour);
    }
    text_ += line + "\n";
    ++count_;
  }
  const std::string& text() const { return text_; }
  std::size_t count() const { return count_; }

 private:
  const ViewSize& size_;
  std::string text_;
  std::size_t count_ = 0;
};

std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, starts_letter));
}

// A table of text. Each column is as wide as its widest entry, so that no two columns touch.
class Columns {
 public:
  struct Column {
    // Least width in letters. With it, the view does not move each time that a number changes.
    std::size_t least = 0;
    bool right = false;
  };
  Columns(std::vector<Column> columns, std::size_t gap) : columns_(std::move(columns)), gap_(gap) {}
  // Adds a row: one entry for each column, and a text behind them.
  void add(std::vector<std::string> texts, std::string rest) {
    for (std::size_t i = 0; i < columns_.size(); ++i)
      columns_[i].least = std::max(columns_[i].least, columns_of(texts[i]));
    rows_.push_back({std::move(texts), std::move(rest)});
  }
  std::size_t rows() const { return rows_.size(); }
  // Returns the number of letters before the text.
  std::size_t width() const {
    std::size_t sum = 0;
    for (const Column& column : columns_) sum += column.least + gap_;
    return sum;
  }
  std::string texts(std::size_t row) const {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      line += padded(rows_[row].texts[i], columns_[i].least, columns_[i].right);
      line.append(gap_, ' ');
    }
    return line;
  }
  const std::string& rest(std::size_t row) const { return rows_[row].rest; }

 private:
  struct Row {
    std::vector<std::string> texts;
    std::string rest;
  };
  std::vector<Column> columns_;
  std::size_t gap_;
  std::vector<Row> rows_;
};

std::string short_memory_name(const std::string& kind, const model::MaybeId& device) {
  return device ? kind + " " + std::to_string(*device) : kind;
}

constexpr const char* not_known_yet = "-";

// Shortens "FUNCTION  FILE:LINE" to `columns` letters; the function is shortened before the line.
std::string fitted(const std::string& where, std::size_t columns) {
  const std::size_t gap = where.rfind("  ");
  if (cut(where, columns) == where || gap == where.npos) return where;
  const std::string line = where.substr(gap + 2);
  constexpr std::size_t least = 6;
  if (line.size() + least > columns) return where;
  return cut(where.substr(0, gap), columns - line.size() - 2) + "… " + line;
}

// All growth is shown in this unit.
std::string per_minute(std::uint64_t bytes) { return human_bytes(bytes) + "/min"; }

std::string growth(const model::SignedFigure& bytes_per_minute) {
  if (!bytes_per_minute) return not_known_yet;
  const std::int64_t bytes = *bytes_per_minute;
  if (bytes == 0) return "0";
  return (bytes < 0 ? "-" : "+") + per_minute(static_cast<std::uint64_t>(std::abs(bytes)));
}

// Returns a rate per second.
std::string rate(const model::SignedFigure& per_minute) {
  if (!per_minute) return not_known_yet;
  const double value = std::max(static_cast<double>(*per_minute) / 60, 0.0);
  char text[32];
  std::snprintf(text, sizeof text, value < 99.95 ? "%.1f" : "%.0f", value);
  return text;
}

std::string bytes_of(const model::Figure& bytes) { return human_bytes(bytes.value_or(0)); }
std::string count_of(const model::Figure& count) { return human_count(count.value_or(0)); }

std::string program_of(const ProcessRow& process) {
  return printable(std::string(file_name(process.program.value_or(""))));
}

std::string age(const ProcessRow& process) { return human_time(process.running_ns.value_or(0)); }

const char* marker(SortBy by, SortBy column) { return by == column ? "*" : ""; }

// Adds a line for each request that waits for memory. `names_processes`: true if the lines tell the
// process.
void add_waiting(const TopAnswer& answer, bool names_processes, Lines& lines) {
  for (const WaitingRow& request : answer.waiting) {
    std::string line;
    if (names_processes) {
      const auto process = std::ranges::find(answer.processes, request.pid, &ProcessRow::pid);
      if (process != answer.processes.end()) line = program_of(*process) + " ";
      line += "(pid " + std::to_string(request.pid) + ") ";
    }
    line += "waits for memory: " + request.api.value_or("a request") +
            (request.bytes ? " of " + bytes_of(request.bytes) : "") + " (" +
            short_memory_name(request.kind, request.device) + "), rung " + request.rung + " for " +
            human_time(request.duration_ns.value_or(0));
    if (request.where) line += ": " + *request.where;
    lines.add(line, bold_colour);
  }
}

void add_keys(const ViewSize& size, Lines& lines) {
  if (size.keys) lines.add("q quits; sort by b live bytes, g growth, r allocations/s (last 10 s)");
}

void add_head(const TopAnswer& answer, const ViewSize& size, Lines& lines) {
  for (const ProcessRow& process : answer.processes)
    lines.add(program_of(process) + " (pid " + std::to_string(process.pid) + ") " +
                  (process.ended ? "has ended after " : "running for ") + age(process),
              bold_colour);
  for (const DeviceRow& device : answer.devices) {
    std::string line = "GPU " + (device.device ? std::to_string(*device.device) : "?") + ": " +
                       printable(device.name.value_or(""));
    if (device.used_bytes)
      line +=
          ", " + bytes_of(device.used_bytes) + " of " + bytes_of(device.total_bytes) + " in use";
    lines.add(line);
    const std::string supply = human_supply(device.steps_left, device.minutes_left);
    if (!supply.empty())
      lines.add("GPU " + (device.device ? std::to_string(*device.device) : "?") +
                    " FILLS UP: full after " + supply,
                bold_colour);
  }
  Columns totals({{22}, {25}}, 2);
  for (const TotalRow& total : answer.totals) {
    std::string peak = "peak " + bytes_of(total.peak_bytes);
    if (total.failures.value_or(0) > 0) peak += ", " + count_of(total.failures) + " failed";
    totals.add({short_memory_name(total.kind, total.device),
                bytes_of(total.live_bytes) + " live in " + count_of(total.live_count)},
               std::move(peak));
  }
  for (std::size_t i = 0; i < totals.rows(); ++i) lines.add(totals.texts(i) + totals.rest(i));
  std::uint64_t growing = 0, growing_bytes = 0;
  for (const StackRow& stack : answer.stacks) {
    growing += stack.keeps_growing ? 1 : 0;
    growing_bytes += stack.keeps_growing_bytes_per_minute.value_or(0);
  }
  if (growing > 0)
    lines.add(human_count(growing) + (growing == 1 ? " stack has" : " stacks have") +
                  " grown for more than a minute, by " + per_minute(growing_bytes),
              bold_colour);
  add_waiting(answer, false, lines);
  add_keys(size, lines);
  lines.add("");
}

// Returns the mark of a growing stack. It stands before the function, since a narrow terminal cuts
// the end of the line.
std::string growing_mark(const StackRow& stack) {
  if (const auto step = stack.keeps_growing_bytes_per_step)
    return "[grows " + human_bytes(*step) + " a step since step " +
           human_count(stack.keeps_growing_since_step.value_or(0)) + "] ";
  const auto rate = stack.keeps_growing_bytes_per_minute;
  return rate ? "[grows " + per_minute(*rate) + "] " : "";
}

}  // namespace

std::size_t process_view_head(const TopAnswer& answer, const ViewSize& size) {
  Lines lines(size);
  add_head(answer, size, lines);
  return lines.count() + 1;  // 1: the line with the names of the columns
}

std::string process_view(const TopAnswer& answer, SortBy by, const ViewSize& size) {
  Lines lines(size);
  add_head(answer, size, lines);
  // The function that allocates matters most. On a narrow terminal the column of the API is left
  // out.
  const bool is_wide = size.columns == 0 || size.columns >= 110;
  std::vector<Columns::Column> shape{{9, true}, {6, true}, {15, true}, {8, true}, {10}};
  if (is_wide) shape.push_back({14});
  Columns table(std::move(shape), is_wide ? 2 : 1);
  const auto add = [&](std::vector<std::string> texts, const std::string& call, std::string where) {
    if (is_wide) texts.push_back(call);
    table.add(std::move(texts), std::move(where));
  };
  add({std::string("LIVE") + marker(by, SortBy::bytes), "COUNT",
       std::string("GROWTH") + marker(by, SortBy::growth),
       std::string("ALLOCS/s") + marker(by, SortBy::rate), "KIND, GPU"},
      "CALL", "WHERE");
  const std::vector<StackRow>& stacks = answer.stacks;
  const std::size_t shown = size.rows == 0 ? stacks.size() : std::min(size.rows, stacks.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const StackRow& stack = stacks[i];
    const std::string memory = short_memory_name(stack.kind, stack.device);
    add({bytes_of(stack.live_bytes), count_of(stack.live_count),
         growth(stack.growth_bytes_per_minute), rate(stack.allocations_per_minute),
         is_wide ? memory : cut(memory, 12)},
        stack.api.value_or(""), growing_mark(stack) + stack.where.value_or(""));
  }
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const std::size_t room = size.columns - std::min(size.columns, table.width());
    lines.add(table.texts(i) + (size.columns == 0 ? table.rest(i) : fitted(table.rest(i), room)),
              i == 0 ? reverse_colour : "");
  }
  if (stacks.empty()) lines.add("nothing is live");
  if (shown < stacks.size() && size.columns == 0) {
    lines.add("… " + std::to_string(stacks.size() - shown) + " more stacks");
  }
  return lines.text();
}

std::string processes_view(const TopAnswer& answer, SortBy by, const ViewSize& size) {
  Lines lines(size);
  // The program's name matters more than the number of its allocations.
  const bool shows_count = size.columns == 0 || size.columns >= 100;
  std::vector<Columns::Column> shape{{8, true}, {9, true}, {9, true}};
  if (shows_count) shape.push_back({9, true});
  for (const std::size_t least : {15u, 8u, 11u}) shape.push_back({least, true});
  Columns table(std::move(shape), size.columns == 0 || size.columns >= 90 ? 2 : 1);
  const auto add = [&](std::vector<std::string> texts, const std::string& count,
                       std::string program) {
    if (shows_count) texts.insert(texts.begin() + 3, count);
    table.add(std::move(texts), std::move(program));
  };
  std::vector<const ProcessRow*> order;
  for (const ProcessRow& process : answer.processes) order.push_back(&process);
  const auto rank = [by](const ProcessRow& process) {
    if (by == SortBy::growth) return process.growth_bytes_per_minute.value_or(0);
    if (by == SortBy::rate) return process.allocations_per_minute.value_or(0);
    return static_cast<std::int64_t>(process.device_bytes.value_or(0) +
                                     process.host_bytes.value_or(0));
  };
  std::ranges::stable_sort(order, [&](const ProcessRow* left, const ProcessRow* right) {
    return rank(*left) > rank(*right);
  });
  lines.add("cuwarden top: " + std::to_string(order.size()) +
                (order.size() == 1 ? " process" : " processes") + " with a ledger",
            bold_colour);
  add_waiting(answer, true, lines);
  add_keys(size, lines);
  lines.add("");
  add({"PID", std::string("DEVICE") + marker(by, SortBy::bytes), "PINNED",
       std::string("GROWTH") + marker(by, SortBy::growth),
       std::string("ALLOCS/s") + marker(by, SortBy::rate), "RUNNING"},
      "COUNT", "PROGRAM");
  const std::size_t shown = size.rows == 0 ? order.size() : std::min(size.rows, order.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const ProcessRow& process = *order[i];
    add({std::to_string(process.pid), bytes_of(process.device_bytes), bytes_of(process.host_bytes),
         growth(process.growth_bytes_per_minute), rate(process.allocations_per_minute),
         age(process)},
        count_of(process.live_count), program_of(process));
  }
  for (std::size_t i = 0; i < table.rows(); ++i)
    lines.add(table.texts(i) + table.rest(i), i == 0 ? reverse_colour : "");
  return lines.text();
}

}  // namespace cuwarden
