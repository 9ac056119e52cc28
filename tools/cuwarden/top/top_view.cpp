#include "tools/cuwarden/top/top_view.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

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

std::string memory_name(Kind kind, DeviceOrdinal device) {
  const std::string name(kind_name(kind));
  return device == no_device ? name : name + " " + std::to_string(device.value);
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

std::string growth(const Change& change) {
  const double bytes = std::min(std::abs(change.bytes_per_second * 60), 0x1p60);
  if (bytes < 1) return "0";
  return (change.bytes_per_second < 0 ? "-" : "+") + per_minute(static_cast<std::uint64_t>(bytes));
}

std::string rate(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 99.95 ? "%.1f" : "%.0f", std::max(value, 0.0));
  return text;
}

std::string program_of(const ledger::ProcessView& process) {
  const std::string path(process.program);
  return printable(path.substr(path.rfind('/') + 1));
}

std::string age(const WatchedProcess& watched) {
  const std::uint64_t start = watched.reader->process().start_monotonic_ns;
  const std::uint64_t now = watched.recent->newest().time_ns;
  return human_time(now > start ? now - start : 0);
}

const char* marker(SortBy by, SortBy column) { return by == column ? "*" : ""; }

void add_keys(const ViewSize& size, Lines& lines) {
  if (size.keys) lines.add("q quits; sort by b live bytes, g growth, r allocations/s (last 10 s)");
}

void add_head(const WatchedProcess& watched, const ViewSize& size, Lines& lines) {
  const ledger::Reader& reader = *watched.reader;
  const ledger::ProcessView process = reader.process();
  const Sample& now = watched.recent->newest();
  lines.add(program_of(process) + " (pid " + std::to_string(watched.pid) + ") " +
                (watched.ended ? "has ended after " : "running for ") + age(watched),
            bold_colour);
  for (std::uint64_t row = 1; row < reader.rows(RegionId::devices); ++row) {
    const auto device = reader.device(row);
    if (!device) continue;
    std::string line = "GPU " + std::to_string(device->ordinal.value) + ": " +
                       printable(std::string(device->name));
    if (device->at != ledger::ReadingAt::none && device->total_bytes >= device->free_bytes) {
      line += ", " + human_bytes(device->total_bytes - device->free_bytes) + " of " +
              human_bytes(device->total_bytes) + " in use";
    }
    lines.add(line);
  }
  Columns series_lines({{22}, {25}}, 2);
  for (const ledger::SeriesView& series : now.series) {
    std::string peak = "peak " + human_bytes(series.peak_bytes);
    if (series.failures > 0) peak += ", " + human_count(series.failures) + " failed";
    series_lines.add(
        {memory_name(series.kind, series.device),
         human_bytes(series.live_bytes) + " live in " + human_count(series.live_count)},
        std::move(peak));
  }
  for (std::size_t i = 0; i < series_lines.rows(); ++i)
    lines.add(series_lines.texts(i) + series_lines.rest(i));
  if (!watched.growing->empty()) {
    const std::size_t count = watched.growing->count();
    lines.add(human_count(count) + (count == 1 ? " stack has" : " stacks have") +
                  " grown for more than a minute, by " +
                  per_minute(watched.growing->bytes_per_minute()),
              bold_colour);
  }
  add_keys(size, lines);
  lines.add("");
}

// Returns the mark of a growing group. It stands before the function, since a narrow terminal cuts
// the end of the line.
std::string growing_mark(const GrowingGroups& growing, std::uint32_t group) {
  const auto rate = growing.bytes_per_minute(group);
  return rate ? "[grows " + per_minute(*rate) + "] " : "";
}

}  // namespace

std::size_t process_view_head(const WatchedProcess& watched, const ViewSize& size) {
  Lines lines(size);
  add_head(watched, size, lines);
  return lines.count() + 1;  // 1: the line with the names of the columns
}

std::string process_view(const WatchedProcess& watched, const std::vector<GroupSample>& groups,
                         SortBy by, const std::function<CallSiteName(std::uint32_t)>& name_of,
                         const ViewSize& size) {
  Lines lines(size);
  add_head(watched, size, lines);
  const Recent& recent = *watched.recent;
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
  const bool knows_changes = recent.knows_changes();
  add({std::string("LIVE") + marker(by, SortBy::bytes), "COUNT",
       std::string("GROWTH") + marker(by, SortBy::growth),
       std::string("ALLOCS/s") + marker(by, SortBy::rate), "KIND, GPU"},
      "CALL", "WHERE");
  const std::size_t shown = size.rows == 0 ? groups.size() : std::min(size.rows, groups.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const GroupSample& group = groups[i];
    const Change change = recent.of_group(group);
    const CallSiteName name = name_of(group.id);
    const std::string memory = memory_name(group.kind, group.device);
    add({human_bytes(group.live_bytes), human_count(group.live_count),
         knows_changes ? growth(change) : not_known_yet,
         knows_changes ? rate(change.allocations_per_second) : not_known_yet,
         is_wide ? memory : cut(memory, 12)},
        name.api, growing_mark(*watched.growing, group.id) + name.where);
  }
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const std::size_t room = size.columns - std::min(size.columns, table.width());
    lines.add(table.texts(i) + (size.columns == 0 ? table.rest(i) : fitted(table.rest(i), room)),
              i == 0 ? reverse_colour : "");
  }
  if (groups.empty()) lines.add("nothing is live");
  if (shown < groups.size() && size.columns == 0) {
    lines.add("… " + std::to_string(groups.size() - shown) + " more stacks");
  }
  return lines.text();
}

std::string processes_view(const std::vector<WatchedProcess>& processes, SortBy by,
                           const ViewSize& size) {
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
  std::vector<const WatchedProcess*> order;
  for (const WatchedProcess& watched : processes) order.push_back(&watched);
  std::ranges::stable_sort(order, [by](const WatchedProcess* left, const WatchedProcess* right) {
    const auto rank = [by](const WatchedProcess& watched) {
      const Sample& now = watched.recent->newest();
      const Change change = watched.recent->of_all();
      return by == SortBy::bytes    ? static_cast<double>(now.device_bytes + now.host_bytes)
             : by == SortBy::growth ? change.bytes_per_second
                                    : change.allocations_per_second;
    };
    return rank(*left) > rank(*right);
  });
  lines.add("cuwarden top: " + std::to_string(order.size()) +
                (order.size() == 1 ? " process" : " processes") + " with a ledger",
            bold_colour);
  add_keys(size, lines);
  lines.add("");
  add({"PID", std::string("DEVICE") + marker(by, SortBy::bytes), "PINNED",
       std::string("GROWTH") + marker(by, SortBy::growth),
       std::string("ALLOCS/s") + marker(by, SortBy::rate), "RUNNING"},
      "COUNT", "PROGRAM");
  const std::size_t shown = size.rows == 0 ? order.size() : std::min(size.rows, order.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const WatchedProcess& watched = *order[i];
    const Sample& now = watched.recent->newest();
    const Change change = watched.recent->of_all();
    const bool knows_changes = watched.recent->knows_changes();
    add({std::to_string(watched.pid), human_bytes(now.device_bytes), human_bytes(now.host_bytes),
         knows_changes ? growth(change) : not_known_yet,
         knows_changes ? rate(change.allocations_per_second) : not_known_yet, age(watched)},
        human_count(now.live_count), program_of(watched.reader->process()));
  }
  for (std::size_t i = 0; i < table.rows(); ++i)
    lines.add(table.texts(i) + table.rest(i), i == 0 ? reverse_colour : "");
  return lines.text();
}

}  // namespace cuwarden
