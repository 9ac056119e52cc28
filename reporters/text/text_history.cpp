#include "reporters/text/text_history.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "reporters/text/elements/merged_rows.hpp"
#include "reporters/text/elements/moments.hpp"
#include "reporters/text/elements/text_stacks.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

constexpr std::size_t most_history_groups = 3, most_history_lines = 3;
constexpr std::uint64_t least_difference = 1 << 20;

bool is_far_above(std::uint64_t peak, std::uint64_t live) {
  return peak - std::min(peak, live) >= std::max(least_difference, live / 2);
}

// Returns a text about all allocations of a stack: short-lived ones show neither at the peak nor at
// the end. Empty if there are no others.
template <class Row>
std::string made_here(const IndexedReport& report, const Row& group) {
  const std::uint64_t made = group.allocations.value_or(0), last = group.last_ns.value_or(0);
  // Reports of earlier versions do not have this number.
  if (made <= group.count.value_or(0) || last == 0) return {};
  return " · " + human_count(made) + " made here between " +
         short_moment(report, group.first_ns.value_or(0)) + " and " + short_moment(report, last);
}

// Returns the row's call. Only leak groups have one.
template <class Row>
model::Text api_of(const Row& row) {
  if constexpr (requires { row.api; }) return row.api;
  return std::nullopt;
}

// Adds the largest rows, with the inner ends of their stacks, and the sum of the others.
template <class Row>
void add_largest(const IndexedReport& report, const std::vector<const Row*>& rows,
                 const Style& style, std::string& text) {
  const std::vector<Row> groups = merged_rows(
      report, rows, [](const Row& row) { return std::tuple(row.kind, row.device, api_of(row)); },
      style);
  const std::size_t shown = std::min(groups.size(), most_history_groups);
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string api = text_or(api_of(groups[i]), "");
    text += "    " + style.bold(human_bytes(groups[i].bytes.value_or(0))) + " in " +
            allocations(groups[i].count.value_or(0)) + " · " +
            memory_name(groups[i].kind, groups[i].device) + (api.empty() ? "" : " · " + api) +
            made_here(report, groups[i]) + "\n";
    add_stack(report, groups[i].stack, most_history_lines, style, text);
  }
  if (shown == groups.size()) return;
  std::uint64_t rest = 0;
  for (std::size_t i = shown; i < groups.size(); ++i) rest += groups[i].bytes.value_or(0);
  const std::size_t others = groups.size() - shown;
  text += style.dim("    … " + human_bytes(rest) + " from " + human_count(others) +
                    (others == 1 ? " more stack" : " more stacks") + " in the report") +
          "\n";
}

// Bytes of one kind of memory over time, in the order of the report.
struct Line {
  struct Point {
    std::uint64_t time_ns, bytes;
  };
  std::vector<Point> points;
  // Returns the bytes at the time; null before the first point.
  std::optional<std::uint64_t> at(std::uint64_t time_ns) const {
    std::optional<std::uint64_t> bytes;
    for (const Point& point : points) {
      if (point.time_ns > time_ns) break;
      bytes = point.bytes;
    }
    return bytes;
  }
};

Line line_of(const IndexedReport& report, std::string_view kind) {
  Line line;
  for (const auto& row : report->timeline) {
    // An RSS of 0 means that it had not been read yet, since no process has that.
    if (row.kind != kind || (kind == "host_rss" && row.last_bytes.value_or(0) == 0)) continue;
    line.points.push_back({row.time_ns.value_or(0), row.last_bytes.value_or(0)});
  }
  return line;
}

}  // namespace

void add_forecasts(const IndexedReport& report, const Style& style, std::string& text) {
  const bool running = was_running(report);
  for (const model::Forecast& row : report->forecasts) {
    const std::string supply = human_supply(row.steps_left, row.minutes_left);
    // After a refused request, there is nothing left to foretell.
    if (supply.empty() || !report->incidents.empty()) continue;
    std::string rate;
    if (row.growth_bytes_per_step)
      rate = human_bytes(*row.growth_bytes_per_step) + " more with each step";
    if (row.growth_bytes_per_minute)
      rate += (rate.empty() ? "" : " and ") + human_bytes(*row.growth_bytes_per_minute) +
              " more each minute";
    text += "\n" +
            style.red("GPU " + std::to_string(row.device) +
                      (running ? " FILLS UP" : " WAS FILLING UP")) +
            ": " + rate + ". At this rate its free " + human_bytes(row.free_bytes.value_or(0)) +
            (running ? " last for " : " would have lasted for ") + supply + "\n";
    std::string location = at_calling_location(report, row.stack);
    if (location.empty() && row.where) location = " at " + printable(*row.where);
    if (!location.empty())
      text += std::string(running ? "  grows" : "  grew") + " fastest" + location + "\n";
  }
}

void add_peaks(const IndexedReport& report, const Style& style, std::string& text) {
  for (const auto& row : report->totals) {
    if (!is_far_above(row.peak_bytes.value_or(0), row.live_bytes.value_or(0))) continue;
    std::vector<const model::PeakHolder*> holders;
    for (const auto& holder : report->peak_holders) {
      if (holder.kind == row.kind && holder.device == row.device) holders.push_back(&holder);
    }
    if (holders.empty()) continue;
    text += "\n" + style.bold("PEAK") + " of " + memory_name(row.kind, row.device) + ": " +
            human_bytes(row.peak_bytes.value_or(0)) +
            (row.peak_time_ns ? " " + moment_of(report, *row.peak_time_ns) : "") + ", held by\n";
    add_largest(report, holders, style, text);
  }
}

void add_released(const IndexedReport& report, const Style& style, std::string& text) {
  std::vector<const model::LeakGroup*> groups;
  for (const auto& group : report->leak_groups) {
    if (group.released_by == "context") groups.push_back(&group);
  }
  add_largest(report, groups, style, text);
}

void add_host_memory(const IndexedReport& report, const Style& style, std::string& text) {
  const bool matters = std::ranges::any_of(report->leak_groups, [](const auto& group) {
    return (group.kind == "pinned" || group.kind == "registered") && !group.released_by;
  });
  const Line resident = line_of(report, "host_rss");
  if (!matters || resident.points.empty()) return;
  const std::array locked{line_of(report, "pinned"), line_of(report, "registered")};

  constexpr std::uint64_t columns = 4;
  const std::uint64_t end = report->process.end_ns.value_or(0);
  std::string head, locked_row, resident_row;
  for (std::uint64_t i = 0; i <= columns; ++i) {
    const std::uint64_t time = end / columns * i + (i == columns ? end % columns : 0);
    std::uint64_t bytes = 0;
    for (const Line& line : locked) bytes += line.at(time).value_or(0);
    const auto rss = resident.at(time);
    head += " " + padded(i == 0 ? "at first" : human_time(time), 11, true);
    locked_row += " " + padded(human_bytes(bytes), 11, true);
    resident_row += " " + padded(rss ? human_bytes(*rss) : "unknown", 11, true);
  }
  text += "\n" + style.bold(padded("HOST MEMORY over time", 28) + head) + "\n";
  text += "  " + padded("pinned and registered", 26) + locked_row + "\n";
  text += "  " + padded("the process's RSS", 26) + resident_row + "\n";
}

}  // namespace cuwarden
