#include "reporters/text_history.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "reporters/merged_rows.hpp"
#include "reporters/printable.hpp"
#include "reporters/quantities.hpp"

namespace cuwarden {
namespace {

using nlohmann::json;

constexpr std::size_t most_groups = 3, most_frames = 3;
constexpr std::uint64_t least_difference = 1 << 20;

bool is_far_above(std::uint64_t peak, std::uint64_t live) {
  return peak - std::min(peak, live) >= std::max(least_difference, live / 2);
}

// What comes and goes all the time shows neither at the peak nor at the end.
std::string made_here(const json& group) {
  const std::uint64_t made = number_of(group, "allocations"), last = number_of(group, "last_ns");
  // Earlier versions of the report do not say how many.
  if (made <= number_of(group, "count") || last == 0) return {};
  return " · " + human_count(made) + " made here between " +
         human_time(number_of(group, "first_ns")) + " and " + human_time(last);
}

// The largest of these, with the inner ends of their stacks, and what the others come to.
void add_largest(const ReportDocument& report, const std::vector<const json*>& rows,
                 const Paint& paint, std::string& text) {
  const std::vector<json> groups = MergedRows(report).of(rows, {"kind", "device", "api"});
  const std::size_t shown = std::min(groups.size(), most_groups);
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string api = text_of(groups[i], "api", "");
    text += "    " + paint.bold(human_bytes(number_of(groups[i], "bytes"))) + " in " +
            allocations(number_of(groups[i], "count")) + " · " + place_of(groups[i]) +
            (api.empty() ? "" : " · " + api) + made_here(groups[i]) + "\n";
    add_stack(report, groups[i], most_frames, paint, text);
  }
  if (shown == groups.size()) return;
  std::uint64_t rest = 0;
  for (std::size_t i = shown; i < groups.size(); ++i) rest += number_of(groups[i], "bytes");
  const std::size_t others = groups.size() - shown;
  text += paint.dim("    … " + human_bytes(rest) + " from " + human_count(others) +
                    (others == 1 ? " more stack" : " more stacks") + " in the report") +
          "\n";
}

// Of one kind of memory, or of two together; by time, in a report's order.
struct Line {
  struct Point {
    std::uint64_t time_ns, bytes;
  };
  std::vector<Point> points;
  // Null before it is known.
  std::optional<std::uint64_t> at(std::uint64_t time_ns) const {
    std::optional<std::uint64_t> bytes;
    for (const Point& point : points) {
      if (point.time_ns > time_ns) break;
      bytes = point.bytes;
    }
    return bytes;
  }
};

Line line_of(const ReportDocument& report, std::string_view kind) {
  Line line;
  for (const json& row : report.table("timeline")) {
    // No process has an RSS of 0: it had not been read yet.
    if (row.at("kind") != kind || (kind == "host_rss" && number_of(row, "last_bytes") == 0))
      continue;
    line.points.push_back({number_of(row, "time_ns"), number_of(row, "last_bytes")});
  }
  return line;
}

bool is_page_locked(const json& row) {
  const std::string kind = text_of(row, "kind", "");
  return kind == "pinned" || kind == "registered";
}

}  // namespace

void add_peaks(const ReportDocument& report, const Paint& paint, std::string& text) {
  for (const json& row : report.table("totals")) {
    if (!is_far_above(number_of(row, "peak_bytes"), number_of(row, "live_bytes"))) continue;
    std::vector<const json*> holders;
    for (const json& holder : report.table("peak_holders")) {
      if (holder.at("kind") == row.at("kind") && holder.at("device") == row.at("device"))
        holders.push_back(&holder);
    }
    if (holders.empty()) continue;
    text += "\n  at its peak" +
            (row.at("peak_time_ns").is_number_unsigned()
                 ? ", after " + human_time(number_of(row, "peak_time_ns"))
                 : "") +
            ", " + human_bytes(number_of(row, "peak_bytes")) + " of " + place_of(row) +
            " were held by\n";
    add_largest(report, holders, paint, text);
  }
}

void add_released(const ReportDocument& report, const Paint& paint, std::string& text) {
  std::vector<const json*> groups;
  for (const json& group : report.table("leak_groups")) {
    if (group.at("released_by") == "context") groups.push_back(&group);
  }
  add_largest(report, groups, paint, text);
}

void add_host_memory(const ReportDocument& report, const Paint& paint, std::string& text) {
  const json& groups = report.table("leak_groups");
  const bool matters = std::any_of(groups.begin(), groups.end(), [](const json& group) {
    return is_page_locked(group) && group.at("released_by").is_null();
  });
  const Line resident = line_of(report, "host_rss");
  if (!matters || resident.points.empty()) return;
  const std::array locked{line_of(report, "pinned"), line_of(report, "registered")};

  constexpr std::uint64_t columns = 4;
  const std::uint64_t end = number_of(report.root().at("process"), "end_ns");
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
  text += "\n" + paint.bold(padded("HOST MEMORY over time", 28) + head) + "\n";
  text += "  " + padded("pinned and registered", 26) + locked_row + "\n";
  text += "  " + padded("the process's RSS", 26) + resident_row + "\n";
}

}  // namespace cuwarden
